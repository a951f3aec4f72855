package provider

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
)

// The fixtures in testdata/providers are what providers answer, and what must be
// made of it. Their form is in testdata/providers/README.md. No flag writes them.

const fixtureKey = "fixture-key-0123456789"

// fixture is one file.
type fixture struct {
	name, call string
	job        jobpoll.Job
	batch      []jobpoll.Job
	done       jobpoll.Report
	order      Order
	exchanges  []exchange
	report     json.RawMessage
	wantJob    json.RawMessage
	finding    json.RawMessage
	results    map[string]wantResult
	fault      *wantError
}

// wantResult is what a batch must say of one job.
type wantResult struct {
	Report json.RawMessage `json:"report"`
	Error  *wantError      `json:"error"`
}

type exchange struct {
	request string   // "GET /path?query"
	headers []string // that the request must have
	sent    string   // JSON that the request must have
	status  int
	header  http.Header
	body    string
}

// wantError is what an error must be.
type wantError struct {
	Kind       jobpoll.ErrorKind `json:"kind"`
	Status     int               `json:"status"`
	RetryAfter float64           `json:"retry_after"` // seconds
	Scope      jobpoll.Scope     `json:"scope"`
	Contains   []string          `json:"contains"`
	Matches    []string          `json:"matches"`
}

var fixtureErrors = map[string]error{"ErrAmbiguous": ErrAmbiguous, "ErrNoID": ErrNoID, "ErrEnded": ErrEnded, "ErrForeignHost": ErrForeignHost}

func fixtureFiles(t testing.TB, provider string) []string {
	files, err := filepath.Glob(filepath.Join("..", "testdata", "providers", provider, "*.http"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

// readFixture reads a file; base stands for {{base}} in it.
func readFixture(t testing.TB, file, base string) *fixture {
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	f := &fixture{name: strings.TrimSuffix(filepath.Base(file), ".http"), job: jobpoll.Job{Route: "r"}}
	section, text := "", ""
	end := func() {
		switch section {
		case "":
		case "sent":
			f.exchanges[len(f.exchanges)-1].sent = text
		case "body":
			f.exchanges[len(f.exchanges)-1].body = strings.TrimSuffix(text, "\n")
		case "report":
			f.report = json.RawMessage(text)
		case "job":
			f.wantJob = json.RawMessage(text)
		case "finding":
			f.finding = json.RawMessage(text)
		case "results":
			fixtureJSON(t, file, text, &f.results)
		case "error":
			f.fault = &wantError{}
			fixtureJSON(t, file, text, f.fault)
		default:
			t.Fatalf("%s: the section %q", file, section)
		}
		section, text = "", ""
	}
	lines := bufio.NewScanner(strings.NewReader(strings.ReplaceAll(string(raw), "{{base}}", base)))
	for lines.Scan() {
		line := lines.Text()
		head, rest, _ := strings.Cut(line, " ")
		switch head {
		case "#":
		case "call:":
			f.call = rest
		case "watched:":
			fixtureJSON(t, file, rest, &f.job)
		case "batch:":
			fixtureJSON(t, file, rest, &f.batch)
		case "done:":
			fixtureJSON(t, file, rest, &f.done)
		case "order:":
			fixtureJSON(t, file, rest, &f.order)
		case "form:":
			var form Form
			fixtureJSON(t, file, rest, &form)
			f.order.Input = form
		case ">":
			end()
			if method, _, _ := strings.Cut(rest, " "); slices.Contains([]string{"GET", "POST", "PUT", "DELETE"}, method) {
				f.exchanges = append(f.exchanges, exchange{request: rest, header: http.Header{"Content-Type": {"application/json"}}})
				section = "sent"
			} else {
				x := &f.exchanges[len(f.exchanges)-1]
				x.headers = append(x.headers, rest)
				section = "sent"
			}
		case "<":
			if section != "body" {
				end()
			}
			x := &f.exchanges[len(f.exchanges)-1]
			if name, value, ok := strings.Cut(rest, ": "); ok {
				x.header.Set(name, value)
			} else {
				code, _, _ := strings.Cut(rest, " ")
				x.status, err = strconv.Atoi(code)
				require.NoError(t, err, "%s: %s", file, line)
			}
			section = "body"
		case "===":
			end()
			section = rest
		default:
			if section != "" {
				text += line + "\n"
			} else if line != "" {
				t.Fatalf("%s: the line %q", file, line)
			}
		}
	}
	require.NoError(t, lines.Err())
	end()
	require.NotEmpty(t, f.call, file)
	return f
}

func fixtureJSON(t testing.TB, file, text string, v any) {
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(v), "%s: %s", file, text)
}

// fixtureServer serves the exchanges in order.
type fixtureServer struct {
	*httptest.Server
	mu   sync.Mutex
	t    testing.TB
	left []exchange
}

func newFixtureServer(t testing.TB) *fixtureServer {
	s := &fixtureServer{t: t}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *fixtureServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.left) == 0 {
		s.t.Errorf("one request too many: %s %s", r.Method, r.URL)
		return
	}
	x := s.left[0]
	s.left = s.left[1:]
	body, _ := io.ReadAll(r.Body)
	assert.Equal(s.t, x.request, r.Method+" "+r.RequestURI)
	assert.Contains(s.t, strings.Join(slices.Concat(slices.Collect(maps.Values(r.Header))...), "\n"), fixtureKey)
	for _, h := range x.headers {
		name, value, _ := strings.Cut(h, ": ")
		assert.Equal(s.t, value, r.Header.Get(name), name)
	}
	if strings.TrimSpace(x.sent) != "" {
		assert.JSONEq(s.t, x.sent, sentJSON(s.t, r, body))
	}
	for k, v := range x.header {
		w.Header()[k] = v
	}
	w.Header()["Date"] = nil
	w.WriteHeader(x.status)
	_, _ = io.WriteString(w, x.body)
}

// adapter is what all adapters can do.
type adapter interface {
	jobpoll.Checker
	jobpoll.Refresher
	Submit(ctx context.Context, o Order) (jobpoll.Job, jobpoll.Report, error)
	Client() *Client
}

// newAdapterFor makes the adapter of that name.
func newAdapterFor(t testing.TB, name string, cfg Config) adapter {
	t.Helper()
	var a adapter
	var err error
	switch name {
	case "fal":
		a, err = NewFal(cfg)
	case "replicate":
		a, err = NewReplicate(cfg)
	case "atlas":
		a, err = NewAtlas(cfg)
	default:
		require.Contains(t, families, name)
		a, err = families[name].make(cfg)
	}
	require.NoError(t, err)
	require.NotNil(t, a, "no adapter %q", name)
	return a
}

var adapterNames = []string{"fal", "replicate", "atlas"}

func TestEveryFixtureIsReadAsItSays(t *testing.T) {
	for _, provider := range everyAdapter() {
		for _, file := range fixtureFiles(t, provider) {
			t.Run(provider+"/"+strings.TrimSuffix(filepath.Base(file), ".http"), func(t *testing.T) {
				server := newFixtureServer(t)
				clock := polltest.NewClock(time.Date(2026, 1, 2, 3, 5, 0, 0, time.UTC))
				a := newAdapterFor(t, provider, Config{BaseURL: server.URL, Credentials: Secret(fixtureKey), Clock: clock})
				f := readFixture(t, file, server.URL)
				server.left = f.exchanges
				f.play(t, a)
				assert.Empty(t, server.left, "these were not asked for")
				assert.Zero(t, clock.Timers(), "a timer is left")
			})
		}
	}
}

// Some servers put the mark of UTF-8 before their JSON: it changes nothing.
func TestAMarkBeforeAnAnswerChangesNothing(t *testing.T) {
	const mark = "\ufeff"
	for _, provider := range everyAdapter() {
		for _, file := range fixtureFiles(t, provider) {
			server := newFixtureServer(t)
			a := newAdapterFor(t, provider, Config{BaseURL: server.URL, Credentials: Secret(fixtureKey), Clock: polltest.NewClock(time.Date(2026, 1, 2, 3, 5, 0, 0, time.UTC))})
			f := readFixture(t, file, server.URL)
			for i, x := range f.exchanges {
				if strings.HasPrefix(x.body, "{") {
					f.exchanges[i].body = mark + x.body
				}
			}
			server.left = f.exchanges
			t.Run(provider+"/"+f.name, func(t *testing.T) { f.play(t, a) })
			server.Close()
		}
	}
	for name, parse := range noticeParsers() {
		want, err := parse([]byte(`{"id":"x","task_id":"x","request_id":"x"}`), nil)
		if err != nil {
			continue // it has the id elsewhere
		}
		got, err := parse([]byte(mark+`{"id":"x","task_id":"x","request_id":"x"}`), nil)
		require.NoError(t, err, name)
		require.Equal(t, want, got, name)
	}
}

func (f *fixture) play(t *testing.T, a adapter) {
	ctx := t.Context()
	var rep jobpoll.Report
	var err error
	switch f.call {
	case "check":
		rep, err = a.Check(ctx, f.job)
	case "fetch":
		rep, err = a.(jobpoll.Fetcher).Fetch(ctx, f.job, f.done)
	case "batch":
		var all map[string]jobpoll.Result
		all, err = a.(jobpoll.BatchChecker).CheckBatch(ctx, f.batch)
		if err == nil {
			f.compare(t, all)
		}
	case "cancel":
		err = a.(jobpoll.Canceler).Cancel(ctx, f.job)
	case "submit":
		var job jobpoll.Job
		job, rep, err = a.Submit(ctx, f.order)
		if f.wantJob != nil {
			requireSameJSON(t, f.wantJob, job)
		}
	case "lookup":
		var found jobpoll.Finding
		found, err = a.(jobpoll.Reconciler).Lookup(ctx, jobpoll.Lost{Job: f.job})
		if err == nil {
			requireSameJSON(t, f.finding, found)
		}
	default:
		t.Fatalf("the call %q", f.call)
	}
	if f.fault == nil {
		require.NoError(t, err)
		if f.report != nil {
			requireSameJSON(t, f.report, rep)
		} else {
			require.Contains(t, []string{"cancel", "lookup", "batch"}, f.call, "it expects nothing")
		}
		return
	}
	f.fault.require(t, err)
}

// compare compares the results of a batch.
func (f *fixture) compare(t *testing.T, all map[string]jobpoll.Result) {
	require.NotNil(t, f.results)
	require.ElementsMatch(t, slices.Collect(maps.Keys(f.results)), slices.Collect(maps.Keys(all)))
	for id, want := range f.results {
		got := all[id]
		if want.Error != nil {
			want.Error.require(t, got.Err)
			continue
		}
		require.NoError(t, got.Err, id)
		requireSameJSON(t, want.Report, got.Report)
	}
}

func requireSameJSON(t *testing.T, want json.RawMessage, got any) {
	t.Helper()
	raw, err := json.Marshal(got)
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(raw))
}

func (w *wantError) require(t *testing.T, err error) {
	t.Helper()
	var ce *jobpoll.CheckError
	require.ErrorAs(t, err, &ce)
	require.Equal(t, *w, wantError{Kind: ce.Kind, Status: ce.Status, RetryAfter: ce.Hint.RetryAfter.Seconds(), Scope: ce.Hint.Scope, Contains: w.Contains, Matches: w.Matches}, "%v", err)
	require.True(t, strings.HasPrefix(err.Error(), "jobpoll: "), "%v", err)
	require.NotContains(t, err.Error(), fixtureKey)
	for _, s := range w.Contains {
		require.Contains(t, err.Error(), s)
	}
	for name, target := range fixtureErrors {
		require.Equal(t, slices.Contains(w.Matches, name), errors.Is(err, target), "%s: %v", name, err)
	}
}

// Each word that an adapter knows is in a fixture, and no fixture has another but
// those that show what becomes of unknown ones.
func TestEveryWordHasAFixture(t *testing.T) {
	tables := map[string]jobpoll.Words{"fal": falWords, "replicate": replicateWords, "atlas": atlasWords}
	for name, f := range families {
		if f.words != nil {
			tables[name] = f.words
		}
	}
	for provider, words := range tables {
		seen, odd := map[string]bool{}, 0
		for _, file := range fixtureFiles(t, provider) {
			f := readFixture(t, file, "http://h")
			if f.call != "check" || f.report == nil {
				continue
			}
			var rep jobpoll.Report
			require.NoError(t, json.Unmarshal(f.report, &rep), file)
			if rep.State == jobpoll.StateUnknown {
				odd++
				continue
			}
			if rep.RawStatus == "" {
				continue // told without a word
			}
			if _, ok := words[rep.RawStatus]; ok {
				seen[rep.RawStatus] = true
			} else {
				require.NotEqual(t, jobpoll.StateUnknown, words.State(rep.RawStatus), "%s: %q", file, rep.RawStatus)
			}
		}
		require.Positive(t, odd, "%s: no fixture with an unknown word", provider)
		for w := range words {
			require.True(t, seen[w], "%s: no fixture for the word %q", provider, w)
		}
	}
}

// Each kind of failure that an adapter can tell is in a fixture.
func TestEveryFailureKindHasAFixture(t *testing.T) {
	all := map[string]bool{}
	for _, provider := range everyAdapter() {
		for _, file := range fixtureFiles(t, provider) {
			var rep jobpoll.Report
			if f := readFixture(t, file, "http://h"); f.report != nil && json.Unmarshal(f.report, &rep) == nil && rep.Failure != nil {
				all[fmt.Sprint(provider, " ", rep.Failure.Kind)] = true
			}
		}
	}
	for _, want := range []string{
		"fal fault", "fal rejected", "fal filtered", "fal no output", "fal unknown",
		"replicate unknown", "replicate filtered", "replicate fault", "replicate no output",
		"atlas unknown", "atlas filtered", "atlas no output",
	} {
		require.True(t, all[want], want)
	}
	for name, f := range families {
		for _, kind := range f.kinds {
			require.True(t, all[fmt.Sprint(name, " ", kind)], "%s: no fixture for the failure %q", name, kind)
		}
	}
}
