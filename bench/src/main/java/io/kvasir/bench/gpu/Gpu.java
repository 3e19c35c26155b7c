package io.kvasir.bench.gpu;

import io.kvasir.panama.cuda.CudaAvailability;
import io.kvasir.panama.cuda.CudaContext;
import io.kvasir.panama.cuda.CudaProbe;
import io.kvasir.panama.cuda.CudaStream;

/**
 * The first GPU, its primary context and one stream. The context is current on the thread that
 * opened it, which is the only one that calls NIXL with its memory.
 */
final class Gpu implements AutoCloseable {
    private final CudaContext context;
    private final CudaStream stream;

    private Gpu(CudaContext context, CudaStream stream) {
        this.context = context;
        this.stream = stream;
    }

    /**
     * Starts the driver and makes the context current here.
     *
     * @throws MissingPartException if there is no GPU that can be used
     * @throws io.kvasir.panama.cuda.CudaException if the driver fails
     */
    static Gpu open() {
        return switch (CudaProbe.probe()) {
            case CudaAvailability.Absent absent ->
                    throw new MissingPartException(absent.describe());
            case CudaAvailability.Available available -> {
                System.out.println(available.describe());
                final CudaContext context = available.devices().getFirst().retainPrimaryContext();
                context.setCurrent();
                yield new Gpu(context, context.createStream());
            }
        };
    }

    CudaContext context() {
        return context;
    }

    CudaStream stream() {
        return stream;
    }

    @Override
    public void close() {
        context.close();
    }
}
