// Package polltest is for tests of code that uses jobpoll: a manual clock, a
// scripted provider, and a harness that runs a Poller on both.
//
//	func TestRender(t *testing.T) {
//		clock := polltest.NewClock(time.Time{})
//		provider := polltest.NewProvider(clock)
//		provider.Add("abc", `queued; at 8s running 20% eta 30s; at 40s succeeded`)
//		var seen polltest.Recorder
//
//		h := polltest.Start(t, jobpoll.Config{
//			Clock:     clock,
//			Routes:    []jobpoll.Route{{Name: "fal", Checker: provider}},
//			Callbacks: seen.Callbacks(),
//		})
//		require.NoError(t, h.Watch(t.Context(), jobpoll.Job{Route: "fal", ID: "abc"}))
//		h.Clock.Advance(2 * time.Minute)
//
//		out, ok := seen.Outcome(jobpoll.Key{Route: "fal", ID: "abc"})
//		require.True(t, ok)
//		require.Equal(t, jobpoll.ReasonSucceeded, out.Reason)
//	}
//
// There is nothing to sleep for and nothing to retry: Advance returns when
// everything that it set off is done.
package polltest
