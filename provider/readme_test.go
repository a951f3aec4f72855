package provider

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
)

var updateReadme = flag.Bool("update", false, "write the table of providers in README.md anew")

// listedAs says what a provider is called, and what it publishes.
type listedAs struct {
	title, constructor string
	pace               jobpoll.Guidance
	limits             jobpoll.Limits
	byTier             bool // limits.Jobs is of the account
}

var listedProviders = map[string]listedAs{
	"fal":        {"fal", "NewFal", jobpoll.Guidance{}, FalLimits(1), true},
	"replicate":  {"Replicate", "NewReplicate", jobpoll.Guidance{}, ReplicateLimits(), false},
	"atlas":      {"Atlas Cloud", "NewAtlas", AtlasVideo(), AtlasLimits(), false},
	"runway":     {"Runway", "NewRunway", RunwayPace(), RunwayLimits(1), true},
	"luma":       {"Luma", "NewLuma", jobpoll.Guidance{}, jobpoll.Limits{}, false},
	"openai":     {"OpenAI's shape", "NewOpenAI", OpenAIPace(), jobpoll.Limits{}, false},
	"kling":      {"Kling", "NewKling", jobpoll.Guidance{}, KlingLimits(1), true},
	"kling3":     {"Kling 3.x", "NewKling3", jobpoll.Guidance{}, KlingLimits(1), true},
	"minimax":    {"MiniMax (Hailuo)", "NewMiniMax", jobpoll.Guidance{}, jobpoll.Limits{}, false},
	"minimax2":   {"MiniMax (H3)", "NewMiniMaxV2", jobpoll.Guidance{}, jobpoll.Limits{}, false},
	"veo":        {"Google Veo (Gemini)", "NewGeminiVeo", VeoPace(), jobpoll.Limits{}, false},
	"vertex":     {"Google Veo (Vertex)", "NewVertexVeo", VeoPace(), jobpoll.Limits{}, false},
	"dashscope":  {"DashScope (Wan)", "NewDashScope", DashScopePace(), DashScopeLimits(), false},
	"ark":        {"Ark (Seedance)", "NewArk", jobpoll.Guidance{}, ArkLimits(), false},
	"wavespeed":  {"WaveSpeed", "NewWaveSpeed", WaveSpeedVideo(), jobpoll.Limits{}, false},
	"xai":        {"xAI", "NewXAI", jobpoll.Guidance{}, jobpoll.Limits{}, false},
	"stability":  {"Stability", "NewStability", StabilityPace(), StabilityLimits(), false},
	"azure-lro":  {"Azure's convention", "NewAzureLRO", jobpoll.Guidance{}, jobpoll.Limits{}, false},
	"google-lro": {"Google's convention", "NewGoogleLRO", jobpoll.Guidance{}, jobpoll.Limits{}, false},
}

// published is the pace that a provider publishes, for people.
func (l listedAs) published() string {
	var all []string
	rate := func(per float64, of string) {
		if per > 0 {
			all = append(all, fmt.Sprintf("%g %s/s", per, of))
		}
	}
	if f := l.pace.Floor; f > 0 {
		all = append(all, fmt.Sprintf("a look in %g s", f.Seconds()))
	}
	rate(l.limits.Total.Rate, "calls")
	rate(l.limits.Status.Rate, "looks")
	rate(l.limits.Submit.Rate, "orders")
	switch {
	case l.byTier:
		all = append(all, "jobs at once, by tier")
	case l.limits.Jobs > 0:
		all = append(all, fmt.Sprintf("%d jobs that wait", l.limits.Jobs))
	}
	return strings.Join(all, ", ")
}

// shown is what the fixtures of a provider show that is told of jobs.
func shown(t *testing.T, name string) (states, rest string) {
	seen := map[string]bool{}
	for _, file := range fixtureFiles(t, name) {
		var rep jobpoll.Report
		f := readFixture(t, file, "http://h")
		if f.report == nil || json.Unmarshal(f.report, &rep) != nil {
			continue
		}
		if !rep.State.Terminal() {
			seen[rep.State.String()] = true
		}
		seen["progress"] = seen["progress"] || rep.Progress > 0
		seen["place"] = seen["place"] || rep.QueuePosition > 0
		seen["filter"] = seen["filter"] || rep.Failure != nil && rep.Failure.Kind == jobpoll.FailureFiltered
	}
	var pending []string
	for _, s := range []jobpoll.State{jobpoll.StateQueued, jobpoll.StateRunning} {
		if seen[s.String()] {
			pending = append(pending, s.String())
		}
	}
	return strings.Join(pending, ", "), fmt.Sprintf("%s | %s | %s", tick(seen["progress"]), tick(seen["place"]), tick(seen["filter"]))
}

// lookUp is by what an adapter finds a job again.
func lookUp(t *testing.T, a adapter) string {
	r, ok := a.(jobpoll.Reconciler)
	if !ok {
		return "–"
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // whether it would ask is what is tried
	found, err := r.Lookup(ctx, jobpoll.Lost{Job: jobpoll.Job{Route: "r", ClientKey: "mine"}})
	if err == nil && found.State == jobpoll.FindingImpossible {
		return "by id"
	}
	return "by id, by your key"
}

func tick(yes bool) string {
	if yes {
		return "yes"
	}
	return "–"
}

// providerTable makes the table of README.md from the adapters and their fixtures.
func providerTable(t *testing.T) string {
	var b strings.Builder
	b.WriteString("| provider | adapter | pending is told as | progress | place in the queue | a filter is told | result | cancel | look-up | many in one call | webhook | published pace |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	names := append(slices.Clone(adapterNames), "runway", "luma", "openai", "kling", "kling3", "minimax", "minimax2", "veo", "vertex", "dashscope", "ark", "wavespeed", "xai", "stability", "azure-lro", "google-lro")
	require.ElementsMatch(t, everyAdapter(), names, "an adapter is not listed")
	for _, name := range names {
		l := listedProviders[name]
		a := newAdapterFor(t, name, Config{BaseURL: "https://api.example", Credentials: Secret(kitKey)})
		_, cancels := a.(jobpoll.Canceler)
		list, lists := a.(jobpoll.BatchChecker)
		batch := tick(lists)
		if lists {
			batch = fmt.Sprintf("up to %d", list.MaxBatch())
		}
		result := "with the look"
		if _, fetches := a.(jobpoll.Fetcher); fetches {
			result = "a second call"
		}
		states, rest := shown(t, name)
		pace := l.published()
		if pace == "" {
			pace = "–"
		}
		fmt.Fprintf(&b, "| %s | `provider.%s` | %s | %s | %s | %s | %s | %s | %s | %s |\n",
			l.title, l.constructor, states, rest, result, tick(cancels), lookUp(t, a), batch, tick(noticeParsers()[name] != nil), pace)
	}
	return b.String()
}

// The table of README.md is what the adapters can do. With -update it is written anew.
func TestTheTableOfProvidersIsTrue(t *testing.T) {
	const begin, end = "<!-- providers -->\n", "<!-- /providers -->"
	file := filepath.Join("..", "README.md")
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(raw), begin)
	require.True(t, ok, "README.md has no place for the table")
	held, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	table := providerTable(t)
	if *updateReadme {
		require.NoError(t, os.WriteFile(file, []byte(before+begin+table+end+after), 0o644))
		return
	}
	require.Equal(t, table, held, "go test ./provider -run TestTheTableOfProvidersIsTrue -update")
}

// What is published makes a route that New takes.
func TestEveryPublishedPaceIsTaken(t *testing.T) {
	var routes []jobpoll.Route
	for name, l := range listedProviders {
		routes = append(routes, jobpoll.Route{
			Name: name, Checker: newAdapterFor(t, name, Config{BaseURL: "https://api.example", Credentials: Secret(kitKey)}),
			Budget: jobpoll.NewBudget(name, l.limits), Guidance: map[string]jobpoll.Guidance{"": l.pace, "image": WaveSpeedImages()},
		})
	}
	_, err := jobpoll.New(jobpoll.Config{Routes: routes, Clock: polltest.NewClock(time.Time{})})
	require.NoError(t, err)
	require.Equal(t, 5*time.Second, RunwayPace().Floor)
	require.InDelta(t, 20, DashScopeLimits().Status.Rate, 1e-9)
	require.InDelta(t, 150, StabilityLimits().Total.Rate*10, 1e-9)
	require.Equal(t, jobpoll.Limits{}, RunwayLimits(-1))
	require.Equal(t, jobpoll.Limits{Jobs: 3}, KlingLimits(3))
}
