package io.kvasir.panama.cuda;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

import java.util.Optional;

class CudaResultTest {
    @Test
    void everyResultIsFoundByItsNumber() {
        for (CudaResult result : CudaResult.values()) {
            assertEquals(Optional.of(result), CudaResult.of(result.code()));
        }
        assertEquals(Optional.empty(), CudaResult.of(-1));
        assertEquals(Optional.empty(), CudaResult.of(5));
    }

    @Test
    void anErrorSaysWhatFailedWhyAndWhatItWasAbout() {
        final CudaException error =
                new CudaException("cuMemAlloc_v2", 2, "CUDA_ERROR_OUT_OF_MEMORY", "length=9");
        assertEquals(
                "cuMemAlloc_v2 failed: CUDA_ERROR_OUT_OF_MEMORY (2), length=9", error.getMessage());
        assertEquals("cuMemAlloc_v2", error.function());
        assertEquals("CUDA_ERROR_OUT_OF_MEMORY", error.errorName());
        assertEquals(2, error.code());
        assertEquals(Optional.of(CudaResult.OUT_OF_MEMORY), error.result());
    }
}
