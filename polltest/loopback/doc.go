// Package loopback serves the scripts of package polltest over HTTP on the
// loopback interface, in the shape in which a provider speaks: its paths, status
// codes, headers, field names and error bodies. It is for tests of adapters and
// of whole programs, and for programs that show polling without an account.
//
//	server := loopback.Start(loopback.Config{
//		Wire:       loopback.Replicate(),
//		Credential: "secret",
//		Script:     func(int, json.RawMessage) string { return "queued; at 8s running 20%; at 40s succeeded" },
//	})
//	defer server.Close()
//	// POST server.URL() + "/v1/predictions" …
//
// A server lives on the Clock of its Config. On a polltest.Clock a request that
// waits in the server for time to go on counts as idle, so that Clock.Advance
// and a Poller that looks over HTTP go on in step.
//
// One server is one account at one provider: its rate limits, its limit of jobs
// and its credential, or what says of each whether it is right. A new provider is a new Wire.
//
// A Server keeps all its jobs until it is closed. It is no server for strangers.
package loopback
