/**
 * What can be set, as a table: each {@link io.kvasir.router.settings.Setting} is a row with its
 * name, type, default, range and text, of which configuration files, flags, environment variables
 * and the reference of settings are made. {@link io.kvasir.router.settings.SettingTable} is all
 * rows of one program, {@link io.kvasir.router.settings.Settings} values for them, each with where
 * it came from.
 *
 * <p>{@link io.kvasir.router.settings.RouterSettings} has the rows of a router; a gateway adds its
 * own. {@code RouterConfig} is one router's values, checked against one another. All values are
 * immutable.
 */
package io.kvasir.router.settings;
