# Runs two commands and fails with both outputs unless they print the same: cmake -DONE= -DOTHER= -P
foreach(side ONE OTHER)
  separate_arguments(command UNIX_COMMAND "${${side}}")
  execute_process(COMMAND ${command} OUTPUT_VARIABLE ${side}_output COMMAND_ERROR_IS_FATAL ANY)
endforeach()
if(NOT ONE_output STREQUAL OTHER_output)
  message(FATAL_ERROR "these print different things\n${ONE}:\n${ONE_output}\n${OTHER}:\n${OTHER_output}")
endif()
