package io.kvasir.router.policy;

import java.util.Objects;

/**
 * What decides among workers: which may be chosen, what each costs, which of them is taken. Has a
 * name, by which {@code RouterSettings.SELECTION_POLICY} and messages know it.
 *
 * @param name words joined by dashes
 * @param eligibility asked in every mode
 * @param costModel asked in every mode where it is not the linear one, so that it can be shown
 * @param picker asked in mode {@link RoutingMode#KV}
 */
public record SelectionPolicy(
        String name, Eligibility eligibility, CostModel costModel, Picker picker) {
    /** Every worker, by the linear cost, the lowest; the only one that need not look at each. */
    public static final SelectionPolicy LINEAR =
            new SelectionPolicy("linear", Eligibility.ALL, CostModel.LINEAR, Picker.LOWEST);

    /** Checks the values. */
    public SelectionPolicy {
        Objects.requireNonNull(name, "name");
        Objects.requireNonNull(eligibility, "eligibility");
        Objects.requireNonNull(costModel, "costModel");
        Objects.requireNonNull(picker, "picker");
        if (!name.matches("[a-z0-9]+(-[a-z0-9]+)*")) {
            throw new IllegalArgumentException(
                    "policy name '" + name + "' is not made of small letters, digits and dashes");
        }
    }

    /** Whether each candidate has to be looked at. */
    public boolean looksAtEach() {
        return !(eligibility.equals(Eligibility.ALL)
                && costModel.equals(CostModel.LINEAR)
                && picker.equals(Picker.LOWEST));
    }
}
