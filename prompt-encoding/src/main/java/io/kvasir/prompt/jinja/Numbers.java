package io.kvasir.prompt.jinja;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.RoundingMode;

/**
 * Python's numbers: whole ones are {@link Long}, or {@link BigInteger} where that is too small, the
 * others {@link Double}. Booleans count as 0 and 1.
 */
final class Numbers {
    private static final BigInteger MIN = BigInteger.valueOf(Long.MIN_VALUE);
    private static final BigInteger MAX = BigInteger.valueOf(Long.MAX_VALUE);

    /** Bits beyond which a product or power is refused: it would only exhaust memory. */
    private static final int MAX_BITS = 1 << 16;

    /** Bits of a whole number that a real one keeps. */
    private static final int EXACT_BITS = 53;

    /** Bits of a quotient before it is rounded, at the least. */
    private static final int QUOTIENT_BITS = 66;

    /** Python's limit of whole numbers that are read from text or written as such. */
    private static final int MAX_DIGITS = 4300;

    private static final int BITS_PER_WORD = 32;

    /** Products of two words that a step may take. */
    private static final int PRODUCTS_PER_STEP = 256;

    private Numbers() {}

    /** The smallest representation of a whole number. */
    static Object of(BigInteger value) {
        return value.compareTo(MIN) >= 0 && value.compareTo(MAX) <= 0
                ? (Object) value.longValue()
                : value;
    }

    static boolean isNumber(Object value) {
        return isWhole(value) || value instanceof Double;
    }

    /** Whether a value is an integer, or a boolean in its place. */
    static boolean isWhole(Object value) {
        return value instanceof Long || value instanceof BigInteger || value instanceof Boolean;
    }

    static BigInteger big(Object whole) {
        return switch (whole) {
            case BigInteger big -> big;
            case Boolean b -> b ? BigInteger.ONE : BigInteger.ZERO;
            default -> BigInteger.valueOf((Long) whole);
        };
    }

    static double real(Object number) {
        if (number instanceof Double d) {
            return d;
        }
        final double real = big(number).doubleValue();
        if (Double.isInfinite(real)) {
            throw new ValueException("int too large to convert to float");
        }
        return real;
    }

    /** A value as an index or count. */
    static long index(Object value) {
        if (value instanceof Undefined undefined) {
            throw undefined.fail();
        }
        if (!isWhole(value)) {
            throw new ValueException(
                    "'"
                            + PythonValues.typeName(value)
                            + "' object cannot be interpreted as an integer");
        }
        final Object whole = of(big(value));
        if (whole instanceof Long l) {
            return l;
        }
        return big(value).signum() < 0 ? Long.MIN_VALUE : Long.MAX_VALUE;
    }

    /**
     * A whole number of digits without a sign.
     *
     * @throws ValueException if there are more of them than Python takes, or than a product may
     *     have bits
     * @throws NumberFormatException for a digit beyond the radix
     */
    static Object parse(String digits, int radix) {
        final int most = Integer.bitCount(radix) == 1 ? MAX_BITS : MAX_DIGITS;
        if (digits.length() > most) {
            throw tooManyDigits(most);
        }
        final long length = digits.length();
        Budget.current().steps(length + length * length / (PRODUCTS_PER_STEP * BITS_PER_WORD));
        return of(new BigInteger(digits, radix));
    }

    private static ValueException tooManyDigits(int most) {
        return new ValueException(
                "Exceeds the limit (" + most + " digits) for integer string conversion");
    }

    /** Decimal digits. */
    static String text(BigInteger whole) {
        Budget.current().steps(products(whole, whole));
        final String text = whole.toString();
        if (text.length() > MAX_DIGITS + (whole.signum() < 0 ? 1 : 0)) {
            throw tooManyDigits(MAX_DIGITS);
        }
        return text;
    }

    /** Steps of multiplying or dividing. */
    private static long products(BigInteger a, BigInteger b) {
        return (a.bitLength() / BITS_PER_WORD + 1L)
                * (b.bitLength() / BITS_PER_WORD + 1L)
                / PRODUCTS_PER_STEP;
    }

    static Object negate(Object value) {
        return value instanceof Double d ? (Object) (-d) : of(big(value).negate());
    }

    static int compare(Object left, Object right) {
        if (left instanceof Long a && right instanceof Long b) {
            return Long.compare(a, b);
        }
        if (left instanceof Double a) {
            return right instanceof Double b ? compareReals(a, b) : compareMixed(a, big(right));
        }
        return right instanceof Double b
                ? -compareMixed(b, big(left))
                : big(left).compareTo(big(right));
    }

    private static int compareReals(double a, double b) {
        return a < b ? -1 : a > b ? 1 : 0;
    }

    /** Compares the exact values: a whole number may have more digits than a real one keeps. */
    private static int compareMixed(double a, BigInteger b) {
        return Double.isFinite(a) && b.bitLength() > EXACT_BITS
                ? new BigDecimal(a).compareTo(new BigDecimal(b))
                : compareReals(a, b.doubleValue());
    }

    static Object arithmetic(String operator, Object left, Object right) {
        if (operator.equals("/")) {
            if (!PythonValues.truth(right)) {
                throw new ValueException("division by zero");
            }
            return left instanceof Double || right instanceof Double
                    ? real(left) / real(right)
                    : quotient(big(left), big(right));
        }
        if (left instanceof Double || right instanceof Double) {
            return onReals(operator, real(left), real(right));
        }
        final BigInteger a = big(left);
        final BigInteger b = big(right);
        final int bits = a.bitLength() + b.bitLength();
        if (bits > MAX_BITS && operator.equals("*")) {
            throw tooLarge();
        }
        Budget.current().steps(products(a, b));
        Budget.current().bytes(bits / Byte.SIZE);
        return switch (operator) {
            case "+" -> of(a.add(b));
            case "-" -> of(a.subtract(b));
            case "*" -> of(a.multiply(b));
            case "//" -> of(floorDivide(a, b));
            case "%" -> of(a.subtract(floorDivide(a, b).multiply(b)));
            default -> power(a, b);
        };
    }

    /** The real number nearest to a quotient, also where its parts are too large to be real. */
    private static double quotient(BigInteger a, BigInteger b) {
        if (a.bitLength() <= EXACT_BITS && b.bitLength() <= EXACT_BITS) {
            return a.doubleValue() / b.doubleValue();
        }
        final int shift = QUOTIENT_BITS - (a.bitLength() - b.bitLength());
        final BigInteger dividend = a.abs().shiftLeft(Math.max(0, shift));
        final BigInteger divisor = b.abs().shiftLeft(Math.max(0, -shift));
        Budget.current().steps(products(dividend, divisor));
        Budget.current().bytes((dividend.bitLength() + divisor.bitLength()) / Byte.SIZE);
        final BigInteger[] parts = dividend.divideAndRemainder(divisor);
        final BigInteger digits = parts[0].shiftLeft(1); // the last bit says that more follows
        final double size =
                Math.scalb(
                        (parts[1].signum() == 0 ? digits : digits.setBit(0)).doubleValue(),
                        -shift - 1);
        if (Double.isInfinite(size)) {
            throw new ValueException("integer division result too large for a float");
        }
        return a.signum() * b.signum() < 0 ? -size : size;
    }

    private static ValueException tooLarge() {
        return new ValueException("a number of more than " + MAX_BITS + " bits");
    }

    private static BigInteger floorDivide(BigInteger a, BigInteger b) {
        if (b.signum() == 0) {
            throw new ValueException("integer division or modulo by zero");
        }
        final BigInteger[] parts = a.divideAndRemainder(b);
        return parts[1].signum() != 0 && parts[1].signum() != b.signum()
                ? parts[0].subtract(BigInteger.ONE)
                : parts[0];
    }

    private static Object power(BigInteger a, BigInteger b) {
        if (b.signum() < 0) {
            return power(real(a), real(b));
        }
        if (a.abs().bitLength() <= 1) { // -1, 0 and 1 stay small
            final boolean positive = b.signum() == 0 || (a.signum() < 0 && !b.testBit(0));
            return positive ? 1L : (long) a.signum();
        }
        if (b.bitLength() > 31 || (long) a.bitLength() * b.intValue() > MAX_BITS) {
            throw tooLarge();
        }
        Budget.current().steps(MAX_BITS / BITS_PER_WORD);
        Budget.current().bytes(MAX_BITS / Byte.SIZE);
        return of(a.pow(b.intValue()));
    }

    private static Object onReals(String operator, double a, double b) {
        if ((operator.equals("//") || operator.equals("%")) && b == 0) {
            throw new ValueException("float division by zero");
        }
        return switch (operator) {
            case "+" -> a + b;
            case "-" -> a - b;
            case "*" -> a * b;
            case "//" -> floorDivide(a, b);
            case "%" -> floorModulo(a, b);
            default -> power(a, b);
        };
    }

    private static double floorDivide(double a, double b) {
        final double remainder = a % b;
        final boolean below = remainder != 0 && (remainder < 0) != (b < 0);
        final double quotient = (a - remainder) / b - (below ? 1 : 0);
        if (quotient == 0) {
            return Math.copySign(0.0, a / b);
        }
        final double floor = Math.floor(quotient);
        return quotient - floor > 0.5 ? floor + 1 : floor;
    }

    /** Where Java has no number or an infinite one, Python has 1, an error or a complex number. */
    private static double power(double a, double b) {
        if (a == 1 || (a == -1 && Double.isInfinite(b))) {
            return 1;
        }
        if (a == 0 && b < 0) {
            throw new ValueException("0.0 cannot be raised to a negative power");
        }
        final boolean finite = Double.isFinite(a) && Double.isFinite(b);
        if (finite && a < 0 && b != Math.rint(b)) {
            throw new ValueException(
                    "a fractional power of a negative number is not implemented: it is complex");
        }
        final double power = Math.pow(a, b);
        if (finite && Double.isInfinite(power)) {
            throw new ValueException("(34, 'Numerical result out of range')");
        }
        return power;
    }

    private static double floorModulo(double a, double b) {
        final double remainder = a % b;
        if (remainder != 0 && (remainder < 0) != (b < 0)) {
            return remainder + b;
        }
        return remainder == 0 ? Math.copySign(0.0, b) : remainder;
    }

    /**
     * A real number without its fraction, as a whole one.
     *
     * @throws ValueException if it is infinite or none
     */
    static Object truncated(double value) {
        if (Double.isNaN(value) || Double.isInfinite(value)) {
            throw new ValueException("cannot convert float " + text(value) + " to integer");
        }
        return of(new BigDecimal(value).toBigInteger());
    }

    /** Python's {@code round(value)}: a whole number, half to even. */
    static Object round(Object value) {
        return value instanceof Double d ? truncated(Math.rint(d)) : of(big(value));
    }

    /** Python's {@code round(value, digits)}: half to even, decided on the exact value. */
    static Object round(Object value, long digits) {
        if (value instanceof Double d) {
            if (d.isNaN() || d.isInfinite() || digits > 400) {
                return d;
            }
            final BigDecimal rounded =
                    new BigDecimal(d)
                            .setScale((int) Math.max(digits, -400), RoundingMode.HALF_EVEN);
            if (Double.isInfinite(rounded.doubleValue())) {
                throw new ValueException("rounded value too large to represent");
            }
            return Math.copySign(rounded.doubleValue(), d); // the sign of 0, too
        }
        final BigInteger whole = big(value);
        if (digits >= 0) {
            return of(whole);
        }
        return of(
                new BigDecimal(whole)
                        .setScale((int) Math.max(digits, -400), RoundingMode.HALF_EVEN)
                        .toBigInteger());
    }

    /** Python's {@code repr} of a float: shortest digits, exponent below 1e-4 and from 1e16. */
    static String text(double value) {
        if (Double.isNaN(value)) {
            return "nan";
        }
        if (Double.isInfinite(value)) {
            return value > 0 ? "inf" : "-inf";
        }
        if (value == 0) {
            return 1 / value < 0 ? "-0.0" : "0.0";
        }
        final BigDecimal shortest = shortest(value);
        final String digits = shortest.unscaledValue().abs().toString();
        final int exponent = digits.length() - 1 - shortest.scale();
        final StringBuilder out = new StringBuilder(value < 0 ? "-" : "");
        if (exponent < -4 || exponent >= 16) {
            out.append(digits.charAt(0));
            if (digits.length() > 1) {
                out.append('.').append(digits, 1, digits.length());
            }
            out.append('e').append(exponent < 0 ? '-' : '+');
            final int size = Math.abs(exponent);
            return out.append(size < 10 ? "0" : "").append(size).toString();
        }
        final String plain = shortest.abs().toPlainString();
        return out.append(plain).append(plain.indexOf('.') < 0 ? ".0" : "").toString();
    }

    private static BigDecimal shortest(double value) {
        final BigDecimal known = new BigDecimal(Double.toString(value)).stripTrailingZeros();
        if (known.precision() == 2) { // Java writes two digits even where one would do
            final BigDecimal one =
                    known.round(new java.math.MathContext(1, RoundingMode.HALF_EVEN));
            if (one.doubleValue() == value) {
                return one.stripTrailingZeros();
            }
        }
        return known;
    }
}
