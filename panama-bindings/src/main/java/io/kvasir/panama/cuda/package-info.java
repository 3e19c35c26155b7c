/**
 * The CUDA driver ({@code libcuda.so.1}) through the foreign function API: devices, contexts,
 * memory, streams and events. Nothing of the CUDA toolkit is needed, neither to build nor to run.
 *
 * <p>Two layers: {@code CudaFunction} and {@code CudaApi} know symbols and signatures; the public
 * classes own handles, check bounds and every result. A machine without a GPU is an answer, not an
 * exception: {@link io.kvasir.panama.cuda.CudaProbe} says what is missing.
 *
 * <p>A context is current on a thread, not in a process: every thread that calls the methods here,
 * and every thread that calls NIXL with GPU memory, makes the context current first with {@link
 * io.kvasir.panama.cuda.CudaContext#setCurrent()}.
 *
 * <p>Knows {@code io.kvasir.panama.libc} and the JDK.
 */
package io.kvasir.panama.cuda;
