package jobpoll

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// logged are the types that are made to be logged: those of a job, and the event of
// each hook.
func logged() []reflect.Type {
	all := []reflect.Type{
		reflect.TypeFor[Job](), reflect.TypeFor[Report](), reflect.TypeFor[Outcome](), reflect.TypeFor[Update](),
		reflect.TypeFor[JobInfo](), reflect.TypeFor[SubmissionInfo](), reflect.TypeFor[Notice](),
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Hooks]()) {
		all = append(all, f.Type.In(0))
	}
	return all
}

// filled sets all that can be set in v; texts that a log must not show are marked.
func filled(v reflect.Value, name string) {
	switch v.Type() {
	case reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))
		return
	case reflect.TypeFor[json.RawMessage]():
		v.Set(reflect.ValueOf(json.RawMessage(`"hidden output"`)))
		return
	case reflect.TypeFor[error]():
		v.Set(reflect.ValueOf(errors.New("api_key=hidden-secret-0123\nrefused")))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			filled(v.Field(i), v.Type().Field(i).Name)
		}
	case reflect.Pointer:
		if name == "Outcome" || name == "Submission" || name == "Failure" {
			v.Set(reflect.New(v.Type().Elem()))
			filled(v.Elem(), name)
		}
	case reflect.String:
		switch name {
		case "Ref":
			v.SetString("hidden ref")
		case "Route", "ID", "ClientKey", "Profile", "Reason", "Cause", "Budget", "Where", "Op", "Name": // not of others
			v.SetString("the-" + strings.ToLower(name))
		default:
			v.SetString("https://user:hidden@host\n" + name)
		}
	case reflect.Interface:
		v.Set(reflect.ValueOf("boom"))
	case reflect.Slice:
		v.Set(reflect.ValueOf([]byte("stack")))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint8, reflect.Uint16:
		v.SetUint(1)
	}
}

// inLogs gives v as the handlers of package slog write it.
func inLogs(v any) (text, asJSON string) {
	var a, b bytes.Buffer
	slog.New(slog.NewTextHandler(&a, nil)).Info("m", "v", v)
	slog.New(slog.NewJSONHandler(&b, nil)).Info("m", "v", v)
	return a.String(), b.String()
}

func TestALogShowsOfAJobWhatAReaderLooksForAndNoMore(t *testing.T) {
	for _, typ := range logged() {
		t.Run(typ.Name(), func(t *testing.T) {
			v := reflect.New(typ).Elem()
			require.Implements(t, (*slog.LogValuer)(nil), v.Interface())
			filled(v, "")
			text, asJSON := inLogs(v.Interface())
			for _, s := range []string{text, asJSON} {
				require.NotContains(t, s, "hidden")
				require.NotContains(t, s, "0001-01-01")
				require.NotContains(t, s, "unknown", "a number without a name")
				require.NotContains(t, s, "LogValue panicked")
				require.Equal(t, 1, strings.Count(s, "\n"))
				if f := v.FieldByName("Job"); f.IsValid() || typ == reflect.TypeFor[Job]() {
					require.Contains(t, s, "the-route")
					require.Contains(t, s, "the-id")
					require.Contains(t, s, "the-clientkey")
				}
				if v.FieldByName("Err").IsValid() {
					require.Contains(t, s, "refused")
				}
			}
			require.True(t, json.Valid([]byte(asJSON)))
		})
	}
}

// A field that is new is logged, or named here with the reason why it is not.
func TestALogShowsEachFieldThatIsSet(t *testing.T) {
	left := map[string]string{
		"Job.Ref":             "it may be an address with a key",
		"Report.Ref":          "the same",
		"Outcome.FirstPollAt": "only the end is of use in a line about it",
		"Outcome.LastPollAt":  "the same",
		"StoreHealth.Message": "it is the text of Err",
	}
	for _, typ := range logged() {
		none, _ := inLogs(reflect.Zero(typ).Interface())
		_, none, _ = strings.Cut(none, " msg=")
		for i := range typ.NumField() {
			v := reflect.New(typ).Elem()
			filled(v.Field(i), typ.Field(i).Name)
			text, _ := inLogs(v.Interface())
			_, text, _ = strings.Cut(text, " msg=")
			name := typ.Name() + "." + typ.Field(i).Name
			if why := left[name]; why != "" {
				require.Equal(t, none, text, "%s is shown: take it off the list (%s)", name, why)
			} else {
				require.NotEqual(t, none, text, "%s is not shown", name)
			}
		}
	}
}

// What is said also where it is false or zero, as that is the news.
func TestALogShowsNothingThatIsZero(t *testing.T) {
	said := map[string]string{
		"CoverageEvent": " v.from=0 v.to=0", "StoreHealth": " v.failing=false", "OwnerEvent": " v.owner=false",
	}
	for _, typ := range logged() {
		text, _ := inLogs(reflect.Zero(typ).Interface())
		require.True(t, strings.HasSuffix(text, "msg=m"+said[typ.Name()]+"\n"), "%s: %s", typ, text)
	}
}

func TestNothingOfAJobIsPrintedAsNumbers(t *testing.T) {
	for _, typ := range logged() {
		v := reflect.New(typ).Elem()
		filled(v, "")
		for _, verb := range []string{"%v", "%+v", "%s"} {
			s := fmt.Sprintf(verb, v.Interface())
			require.NotContains(t, s, "hidden output", typ)
			require.NotContains(t, s, fmt.Sprint([]byte("hidden output")), typ)
			require.NotContains(t, s, fmt.Sprint([]byte(`"hidden`))[1:20], typ)
		}
	}
}

// A log needs another form than a store.
func TestWhatIsStoredIsNotChangedByWhatIsLogged(t *testing.T) {
	type (
		job     Job
		report  Report
		outcome Outcome
		update  Update
		info    JobInfo
	)
	for _, typ := range []reflect.Type{reflect.TypeFor[job](), reflect.TypeFor[report](), reflect.TypeFor[outcome](), reflect.TypeFor[update](), reflect.TypeFor[info]()} {
		plain := reflect.New(typ).Elem()
		filled(plain, "")
		want, err := json.Marshal(plain.Interface())
		require.NoError(t, err)
		for _, real := range logged() {
			if strings.EqualFold(real.Name(), typ.Name()) || real.Name() == "JobInfo" && typ.Name() == "info" {
				got, err := json.Marshal(plain.Convert(real).Interface())
				require.NoError(t, err)
				require.Equal(t, string(want), string(got))
				require.Contains(t, string(got), "hidden ref")
			}
		}
	}
}

func TestWhatIsToldOfAJobIsOneLineForPeople(t *testing.T) {
	job := Job{Route: "fal", ID: "abc", Ref: "r"}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	done := Outcome{Job: job, State: StateSucceeded, Reason: ReasonSucceeded, Polls: 7, DetectionDelay: 3234 * time.Millisecond, DelayExact: true}
	loose := done
	loose.DelayExact, loose.Report.Output = false, json.RawMessage(`"u"`)
	for _, c := range []struct {
		v    fmt.Stringer
		want string
	}{
		{job, "fal/abc"},
		{Job{Route: "fal", ClientKey: "order 1"}, `fal: submission "order 1"`},
		{Job{Route: "fal", ID: "a\n2026 b\x1b[2J\u2028\xffé \""}, `fal/a\n2026 b\x1b[2J\u2028\xffé "`},
		{Outcome{Job: Job{Route: "a\nb", ClientKey: "k\n"}, State: StateFailed, Reason: ReasonFailed}, `a\nb: submission "k\n": failed`},
		{done, "fal/abc: succeeded after 7 looks, found 3.2s late"},
		{loose, "fal/abc: succeeded after 7 looks, found at most 3.2s late, output of 3 bytes"},
		{Outcome{Job: job, State: StateFailed, Reason: ReasonFailed, Polls: 1, Report: Report{Failure: &Failure{Kind: FailureFiltered, Message: "a\nface"}}},
			"fal/abc: failed after 1 look: filtered: a face"},
		{Outcome{Job: job, State: StateRunning, Reason: ReasonUnreachable, Polls: 12, Message: "jobpoll: transient (HTTP 502)"},
			"fal/abc: unreachable (running) after 12 looks: transient (HTTP 502)"},
		{Outcome{Job: job, State: StateRunning}, "fal/abc: not ended, running"},
		{Outcome{}, "/: not ended, unknown"},
		{Report{State: StateRunning, RawStatus: "processing", Progress: 0.4, QueuePosition: 3, Remaining: 12 * time.Second}, `running "processing", 40 %, queue position 3, 12s left`},
		{Report{State: StateRunning, RawStatus: "RUNNING", Progress: 0.999, Hint: Hint{RetryAfter: 250 * time.Millisecond}}, "running, 99 %, asks to wait 250ms"},
		{Report{State: StateSucceeded, OutputDropped: true}, "succeeded, output dropped"},
		{Report{Progress: math.NaN(), QueuePosition: -1}, "unknown"},
		{Update{Job: job, State: StateRunning, Progress: 0.29, Polls: 3}, "fal/abc: running, 29 % after 3 looks"},
		{Update{Job: job, Outcome: &done}, done.String()},
		{JobInfo{Job: job, State: StateQueued, QueuePosition: 2, Polls: 1, NextPollAt: at, Cause: CauseQueued}, "fal/abc: queued, queue position 2 after 1 look, next look at 2026-01-02T03:04:05Z (queued)"},
		{JobInfo{Job: job, InFlight: true, ErrorKind: ErrorTransient}, "fal/abc: unknown, last error transient, a call is under way"},
		{JobInfo{Job: job, Outcome: &done}, done.String()},
		{JobInfo{Job: Job{Route: "fal", ClientKey: "k"}, Submission: &SubmissionInfo{State: SubmissionWaiting, Position: 3, Reason: "for a job slot"}},
			`fal: submission "k": waiting, place 3 in the line, for a job slot`},
		{SubmissionInfo{State: SubmissionInDoubt, Lookups: 1, Message: "jobpoll: lost"}, "in doubt, looked for 1 time: lost"},
		{Decision{At: at, Cause: CauseBackoff}, "look at 2026-01-02T03:04:05Z (backoff)"},
		{Decision{At: at, Cause: CauseParked}, "decide again at 2026-01-02T03:04:05Z (parked)"},
		{Decision{At: at, Stop: ReasonDeadline}, "stop: deadline"},
		{Decision{}, "no decision"},
	} {
		require.Equal(t, c.want, c.v.String())
		require.Equal(t, c.want, fmt.Sprintf("%+v", c.v))
	}
}
