package io.kvasir.services.http;

/** Answers one method of one path. Called by many threads at once; may block. */
@FunctionalInterface
public interface Endpoint {
    /**
     * Answers.
     *
     * @throws ServiceException what the answer is instead
     */
    Reply answer(Call call) throws ServiceException;
}
