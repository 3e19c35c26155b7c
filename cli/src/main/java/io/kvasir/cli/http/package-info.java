/** HTTP to gateways and engines, each exchange with limits of time and bytes. Knows no command. */
package io.kvasir.cli.http;
