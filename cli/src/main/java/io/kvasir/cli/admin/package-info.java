/** What a gateway says on its admin port, read and put in words. Knows no command. */
package io.kvasir.cli.admin;
