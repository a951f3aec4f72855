// Package webhookcheck lets the reference library of Standard Webhooks judge
// package webhook: what one signs the other verifies, and nothing passes here
// that does not pass there. It is a module of its own, so that the library
// does not require its judge.
package webhookcheck
