package io.kvasir.services.http;

/**
 * What services keep apart: models, and the routing groups of a model.
 *
 * @param model name of the model
 * @param routingGroup its routing group
 */
public record GroupKey(String model, String routingGroup) implements Comparable<GroupKey> {
    /** The group of requests that name none. */
    public static final String DEFAULT_GROUP = "default";

    /**
     * Reads {@code model_name} and {@code routing_group}.
     *
     * @throws ServiceException 422 if there is no name of a model, or one cannot be
     */
    public static GroupKey of(JsonBody body) throws ServiceException {
        return new GroupKey(body.text("model_name"), body.text("routing_group", DEFAULT_GROUP));
    }

    /** Reads the name that a group has in a dump; names of models may have colons in them. */
    public static GroupKey ofDump(String name) {
        final int colon = name.lastIndexOf(':');
        return colon < 0
                ? new GroupKey(name, DEFAULT_GROUP)
                : new GroupKey(name.substring(0, colon), name.substring(colon + 1));
    }

    /**
     * The same where a dump says the routing group as well.
     *
     * @return null if it is not at the name's end
     */
    public static GroupKey ofDumpOrNull(String name, String routingGroup) {
        final int colon = name.length() - routingGroup.length() - 1;
        return colon >= 0 && name.charAt(colon) == ':' && name.endsWith(routingGroup)
                ? new GroupKey(name.substring(0, colon), routingGroup)
                : null;
    }

    /** Whether the name that it has in a dump is enough to tell it from others. */
    public boolean isMeantByDumpName() {
        return routingGroup.indexOf(':') < 0;
    }

    /** The name that it has in a dump. */
    public String dumpName() {
        return model + ':' + routingGroup;
    }

    /** Whether a query that names a model, a group or neither of them means this one. */
    public boolean isMeantBy(Call call) {
        final String ofModel = call.query("model_name");
        final String ofGroup = call.query("routing_group");
        return (ofModel == null || ofModel.equals(model))
                && (ofGroup == null || ofGroup.equals(routingGroup));
    }

    /** As error messages name it. */
    public String words() {
        return "model=" + model + " routing_group=" + routingGroup;
    }

    @Override
    public int compareTo(GroupKey other) {
        final int byModel = model.compareTo(other.model);
        return byModel != 0 ? byModel : routingGroup.compareTo(other.routingGroup);
    }
}
