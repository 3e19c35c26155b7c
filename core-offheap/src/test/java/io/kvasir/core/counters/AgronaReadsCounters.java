package io.kvasir.core.counters;

import org.agrona.IoUtil;
import org.agrona.concurrent.UnsafeBuffer;
import org.agrona.concurrent.errors.ErrorLogReader;
import org.agrona.concurrent.status.CountersReader;

import java.io.File;
import java.nio.MappedByteBuffer;

/** Prints what Agrona's readers find in a file of counters. */
final class AgronaReadsCounters {
    private AgronaReadsCounters() {}

    public static void main(String[] arguments) {
        final MappedByteBuffer mapped = IoUtil.mapExistingFile(new File(arguments[0]), "counters");
        final UnsafeBuffer all = new UnsafeBuffer(mapped);
        final int metadata = all.getInt(CountersDescriptor.METADATA_LENGTH_OFFSET);
        final int values = all.getInt(CountersDescriptor.VALUES_LENGTH_OFFSET);
        final int errors = all.getInt(CountersDescriptor.ERRORS_LENGTH_OFFSET);
        final int start = CountersDescriptor.HEADER_LENGTH;
        final CountersReader counters =
                new CountersReader(
                        new UnsafeBuffer(mapped, start, metadata),
                        new UnsafeBuffer(mapped, start + metadata, values));
        counters.forEach(
                (id, type, key, label) ->
                        System.out.println(
                                id
                                        + " "
                                        + type
                                        + " "
                                        + label
                                        + "="
                                        + counters.getCounterValue(id)));
        ErrorLogReader.read(
                new UnsafeBuffer(mapped, start + metadata + values, errors),
                (count, firstMs, lastMs, text) ->
                        System.out.println(
                                count
                                        + " "
                                        + firstMs
                                        + " "
                                        + lastMs
                                        + " "
                                        + text.lines().findFirst().get()));
    }
}
