# Runs two programs and fails with both outputs unless they print the same: cmake -DPUBLISHED= -DSUBSET= -P
execute_process(COMMAND ${PUBLISHED} OUTPUT_VARIABLE published COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${SUBSET} OUTPUT_VARIABLE subset COMMAND_ERROR_IS_FATAL ANY)
if(NOT published STREQUAL subset)
  message(FATAL_ERROR "NIXL's header and nixl_capi_subset.h differ\nNIXL's:\n${published}\nthe subset:\n${subset}")
endif()
