package io.kvasir.pipeline.source;

import io.kvasir.pipeline.wire.DropReason;

/** What a {@link ZmqEventPlaneSource} feeds: the plane of events, or that of load reports. */
interface PlaneSink {
    /** As {@link EventPlane#onMessage}. */
    void onMessage(byte[] bytes, int offset, int length);

    /** A message that has not the frames of the plane. */
    void dropped(DropReason reason, String what);

    /** There is a connection, for the first time or again. */
    void onConnected();

    /** There is none. */
    void onDisconnected(String why);

    /** Time passes. */
    void tick();

    /** Events need to know what was missed. */
    static PlaneSink of(EventPlane plane) {
        return new PlaneSink() {
            @Override
            public void onMessage(byte[] bytes, int offset, int length) {
                plane.onMessage(bytes, offset, length);
            }

            @Override
            public void dropped(DropReason reason, String what) {
                plane.dropped(reason, what);
            }

            @Override
            public void onConnected() {
                plane.onConnected();
            }

            @Override
            public void onDisconnected(String why) {
                plane.onDisconnected(why);
            }

            @Override
            public void tick() {
                plane.tick();
            }
        };
    }

    /** A report that was missed is followed by another, or ends by itself. */
    static PlaneSink of(LoadPlane plane) {
        return new PlaneSink() {
            @Override
            public void onMessage(byte[] bytes, int offset, int length) {
                plane.onMessage(bytes, offset, length);
            }

            @Override
            public void dropped(DropReason reason, String what) {
                plane.dropped();
            }

            @Override
            public void onConnected() {}

            @Override
            public void onDisconnected(String why) {}

            @Override
            public void tick() {}
        };
    }
}
