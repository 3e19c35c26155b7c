package io.kvasir.cli.console;

import com.fasterxml.jackson.databind.JsonNode;

/** Whole numbers of files that a user names; what is none is refused, never rounded or cut. */
public final class WholeNumber {
    private WholeNumber() {}

    /**
     * Reads one; {@code 5.0} and {@code 5e2} are whole, text is none.
     *
     * @param value the field's value; a missing node where there is no such field
     * @param field its name, for the message
     * @param where file and line, for the message
     * @param least smallest number that is taken
     * @param most largest one
     * @throws CommandFailure if it is missing, no number, not whole or out of range
     */
    public static long of(JsonNode value, String field, String where, long least, long most) {
        if (value.canConvertToExactIntegral() && value.canConvertToLong()) {
            final long number = value.longValue();
            if (number >= least && number <= most) {
                return number;
            }
        }
        throw refused(value, field, where, least + ".." + most);
    }

    /**
     * Reads a hash: any number of 64 bits, signed or not.
     *
     * @param value the field's value; a missing node where there is no such field
     * @param field its name, for the message
     * @param where file and line, for the message
     * @throws CommandFailure if it is missing, no number, not whole or has more bits
     */
    public static long hash(JsonNode value, String field, String where) {
        final boolean isUnsigned =
                value.isBigInteger()
                        && value.bigIntegerValue().signum() > 0
                        && value.bigIntegerValue().bitLength() <= Long.SIZE;
        if (isUnsigned || (value.canConvertToExactIntegral() && value.canConvertToLong())) {
            return value.longValue();
        }
        throw refused(value, field, where, "of 64 bits");
    }

    private static CommandFailure refused(
            JsonNode value, String field, String where, String range) {
        return new CommandFailure(
                where
                        + ": "
                        + field
                        + " is "
                        + (value.isMissingNode() ? "missing" : value)
                        + ", must be a whole number "
                        + range);
    }
}
