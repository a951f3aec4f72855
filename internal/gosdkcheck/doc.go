// Package gosdkcheck aims published Go clients of providers at the servers of
// package polltest/loopback, which they take for the provider's own: each submits,
// looks until the end with the helper of its own where it has one, lists, cancels and
// downloads. It is a module of its own, so that the library does not require them.
package gosdkcheck
