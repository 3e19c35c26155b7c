/**
 * What a simulated engine is started with, its clock included, and what can be made to go wrong in
 * one. Values; knows no other package.
 */
package io.kvasir.sim.config;
