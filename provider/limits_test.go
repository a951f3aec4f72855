package provider

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
)

func TestThePublishedLimits(t *testing.T) {
	r := ReplicateLimits()
	require.InDelta(t, 3000, r.Status.Rate*60, 1e-9)
	require.InDelta(t, 600, r.Submit.Rate*60, 1e-9)
	require.Zero(t, r.Total, "the two are not shared")
	require.Equal(t, jobpoll.Limits{Jobs: 20}, FalLimits(20))
	require.Zero(t, FalLimits(-1))
	require.Zero(t, AtlasLimits())

	a, err := NewAtlas(Config{Credentials: Secret(kitKey)})
	require.NoError(t, err)
	var routes []jobpoll.Route
	for name, l := range map[string]jobpoll.Limits{"replicate": ReplicateLimits(), "fal": FalLimits(20), "atlas": AtlasLimits()} {
		routes = append(routes, jobpoll.Route{
			Name: name, Checker: a, Budget: jobpoll.NewBudget(name, l),
			Guidance: map[string]jobpoll.Guidance{"": AtlasVideo(), "image": AtlasImages()},
		})
	}
	_, err = jobpoll.New(jobpoll.Config{Routes: routes, Clock: polltest.NewClock(time.Time{})})
	require.NoError(t, err)
}

func TestEveryAdapterRenewsItsCredentials(t *testing.T) {
	for _, name := range everyAdapter() {
		asked := 0
		a := newAdapterFor(t, name, Config{BaseURL: "https://api.example", Credentials: func(context.Context) (string, error) {
			asked++
			return kitKey, nil
		}})
		require.NoError(t, a.Refresh(t.Context()))
		require.Equal(t, 1, asked, name)
	}
}
