package jobpoll_test

import (
	"context"
	"fmt"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
)

// Looks wait for the webhook, and make up for one that does not come.
func ExampleWebhookPolicy() {
	clock := polltest.NewClock(time.Time{})
	provider := polltest.NewProvider(clock)
	provider.Default("running; at 40s succeeded")
	p, err := jobpoll.New(jobpoll.Config{
		Clock: clock, Rand: noJitter,
		Routes: []jobpoll.Route{{Name: "render", Checker: provider, Webhook: jobpoll.WebhookPolicy{Mode: jobpoll.WebhookExpected}}},
		Callbacks: jobpoll.Callbacks{OnStop: func(_ context.Context, o jobpoll.Outcome) error {
			fmt.Println(o.Job.ID, o.Reason, "via", o.Via, "after", o.DetectedAt.Sub(o.Job.SubmittedAt).Round(time.Second), "and looks:", o.Polls)
			return nil
		}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer polltest.Run(clock, p)()

	for _, id := range []string{"told", "lost"} {
		if err := p.Watch(context.Background(), jobpoll.Job{Route: "render", ID: id, Expected: 30 * time.Second}); err != nil {
			fmt.Println(err)
		}
	}
	clock.Advance(41 * time.Second)
	err = p.Notify(context.Background(), jobpoll.Notice{
		Key: jobpoll.Key{Route: "render", ID: "told"}, Trust: jobpoll.TrustAuthoritative, Report: jobpoll.Report{State: jobpoll.StateSucceeded},
	})
	if err != nil {
		fmt.Println(err)
	}
	clock.Advance(time.Minute)
	// Output:
	// told succeeded via webhook after 41s and looks: 0
	// lost succeeded via poll after 1m31s and looks: 1
}

// The rule alone, for who looks without a Poller: nine of ten webhooks come, and
// nine of ten such jobs end within 90 s.
func ExampleWebhookOutlook() {
	outlook := jobpoll.WebhookOutlook{Coverage: 0.9, P10: 40 * time.Second, P50: time.Minute, P90: 90 * time.Second, P99: 2 * time.Minute}
	begun := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	d := jobpoll.Schedule{Jitter: jobpoll.NoJitter}.Next(jobpoll.Input{
		Job:     jobpoll.Job{Route: "render", ID: "abc", SubmittedAt: begun},
		Webhook: &outlook, Now: begun,
	})
	fmt.Println(d.At.Sub(begun).Round(time.Second), d.Cause)
	// Output:
	// 1m25s reconcile
}
