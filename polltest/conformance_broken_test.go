package polltest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
)

// One fault each, and what is found of it.
func TestEachFaultIsFoundAndNoOther(t *testing.T) {
	transient := func(_ jobpoll.Hint, e *jobpoll.CheckError) error { return errors.New(http.StatusText(e.Status)) }
	for _, tt := range []struct {
		name    string
		breakIt func(a *confAdapter)
		found   []string
	}{
		{"a job that is not done is an error", confLooking(func(r jobpoll.Report, err error) (jobpoll.Report, error) {
			if r.State == jobpoll.StateQueued {
				return jobpoll.Report{}, errors.New("not ready")
			}
			return r, err
		}), []string{"pending"}},
		{"a failed job is an error", confLooking(func(r jobpoll.Report, err error) (jobpoll.Report, error) {
			if r.State == jobpoll.StateFailed && r.Failure.Kind != jobpoll.FailureFiltered {
				return jobpoll.Report{}, errors.New("the job failed")
			}
			return r, err
		}), []string{"failed"}},
		{"the word for done is not known", confReporting(func(r *jobpoll.Report) {
			if r.State == jobpoll.StateSucceeded {
				r.State = jobpoll.StateUnknown
			}
		}), []string{"succeeded"}},
		{"canceled is taken for failed", confReporting(func(r *jobpoll.Report) {
			if r.State == jobpoll.StateCanceled {
				r.State = jobpoll.StateFailed
			}
		}), []string{"canceled"}},
		{"filtered is taken for a success", func(a *confAdapter) {
			a.report = func(answer *confAnswer) jobpoll.Report { answer.Filtered = false; return confReport(answer) }
		}, []string{"filtered"}},
		{"the provider's word is dropped", confReporting(func(r *jobpoll.Report) { r.RawStatus = "" }), []string{"raw-status"}},
		{"a word that is not known is a failure", confReporting(func(r *jobpoll.Report) {
			if r.State == jobpoll.StateUnknown && r.RawStatus != "" {
				r.State = jobpoll.StateFailed
			}
		}), []string{"unknown-word"}},
		{"words are compared by case", confReporting(func(r *jobpoll.Report) {
			if _, known := confWords[r.RawStatus]; !known {
				r.State = jobpoll.StateUnknown
			}
		}), []string{"word-case"}},
		{"an end of the provider's is compared by case", confReporting(func(r *jobpoll.Report) {
			if r.State == jobpoll.StateExpired && r.RawStatus != "timeout" {
				r.State = jobpoll.StateFailed
			}
		}), []string{"word-case"}},
		{"the word of a filtered job in another case is a fault", confReporting(func(r *jobpoll.Report) {
			if r.Failure != nil && r.Failure.Kind == jobpoll.FailureFiltered && r.RawStatus != "done" {
				r.Failure.Kind = jobpoll.FailureFault
			}
		}), []string{"word-case"}},
		{"the word of a fault in another case tells no kind", confReporting(func(r *jobpoll.Report) {
			if r.Failure != nil && r.Failure.Kind == jobpoll.FailureFault && r.RawStatus != "error" {
				r.Failure = nil
			}
		}), []string{"word-case"}},
		{"a failure without its message", confReporting(func(r *jobpoll.Report) {
			if r.Failure != nil {
				r.Failure = &jobpoll.Failure{Kind: r.Failure.Kind, Code: r.Failure.Code}
			}
		}), []string{"failure"}},
		{"progress as percentage", confReporting(func(r *jobpoll.Report) { r.Progress *= 100 }), []string{"progress"}},
		{"a place in the queue from 0", confReporting(func(r *jobpoll.Report) { r.QueuePosition = max(r.QueuePosition-1, 0) }), []string{"queue-position"}},
		{"a negative time left", confReporting(func(r *jobpoll.Report) {
			if r.State == jobpoll.StateSucceeded {
				r.Remaining = -time.Second
			}
		}), []string{"times"}},
		{"an output that is no JSON", confReporting(func(r *jobpoll.Report) {
			if r.State == jobpoll.StateSucceeded {
				r.Output = json.RawMessage("https://cdn.example/a.mp4")
			}
		}), []string{"json"}},
		{"another output", confReporting(func(r *jobpoll.Report) {
			if len(r.Output) > 0 {
				r.Output = json.RawMessage(`{"url":""}`)
			}
		}), []string{"output"}},
		{"NaN for what is no number", func(a *confAdapter) {
			a.decode = func(body []byte) (*confAnswer, error) {
				answer, err := confDecode(bytes.ReplaceAll(body, []byte(`"NaN"`), []byte("-77")))
				if err == nil && answer.Percent == -77 {
					answer.Percent = math.NaN()
				}
				return answer, err
			}
		}, []string{"absurd-values"}},
		{"a progress of 100 is taken for done", func(a *confAdapter) {
			a.report = func(answer *confAnswer) jobpoll.Report {
				r := confReport(answer)
				if answer.Percent >= 100 && r.State == jobpoll.StateQueued {
					r.State = jobpoll.StateSucceeded
				}
				return r
			}
		}, []string{"absurd-values"}},
		{"an end is remembered", func(a *confAdapter) {
			var mu sync.Mutex
			ended := map[string]jobpoll.Report{}
			a.check = func(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
				mu.Lock()
				r, ok := ended[job.ID]
				mu.Unlock()
				if ok {
					return r, nil
				}
				r, err := a.look(ctx, job)
				if err == nil && r.State == jobpoll.StateFailed && r.Failure.Kind == jobpoll.FailureFault {
					mu.Lock()
					ended[job.ID] = r
					mu.Unlock()
				}
				return r, err
			}
		}, []string{"no-memory"}},
		{"a wait on a pending answer is dropped", confLooking(func(r jobpoll.Report, err error) (jobpoll.Report, error) {
			r.Hint = jobpoll.Hint{}
			return r, err
		}), []string{"pending-wait"}},
		{"a rate limit is an error like others", confOnStatus(429, transient), []string{"rate-limit-wait", "status-429"}},
		{"a rate limit without its wait", confOnStatus(429, func(_ jobpoll.Hint, e *jobpoll.CheckError) error {
			return &jobpoll.CheckError{Kind: e.Kind, Status: e.Status}
		}), []string{"rate-limit-wait"}},
		{"a rate limit for one job only", confOnStatus(429, func(h jobpoll.Hint, e *jobpoll.CheckError) error {
			h.Scope = jobpoll.ScopeJob
			return &jobpoll.CheckError{Kind: e.Kind, Status: e.Status, Hint: h}
		}), []string{"rate-limit-wait"}},
		{"dates are measured on the clock of the machine", func(a *confAdapter) {
			right := a.answered
			a.answered = func(resp *http.Response) (jobpoll.Hint, error) { // B01
				resp.Header.Del("Date")
				return right(resp)
			}
		}, []string{"rate-limit-wait", "unavailable-wait"}},
		{"a wait that overflows", confOnStatus(429, func(h jobpoll.Hint, e *jobpoll.CheckError) error {
			if h.RetryAfter == jobpoll.MaxRetryAfter {
				h.RetryAfter = -time.Second
			}
			return &jobpoll.CheckError{Kind: e.Kind, Status: e.Status, Hint: h}
		}), []string{"rate-limit-wait"}},
		{"a 503 without its wait", confOnStatus(503, transient), []string{"unavailable-wait"}},
		{"a 400 is tried again", confOnStatus(400, transient), []string{"status-400"}},
		{"refused credentials are tried again", confOnStatus(401, transient), []string{"status-401"}},
		{"no credit is tried again", confOnStatus(402, transient), []string{"status-402"}},
		{"what is not allowed is tried again", confOnStatus(403, transient), []string{"status-403"}},
		{"gone is taken for never there", confOnStatus(410, func(_ jobpoll.Hint, e *jobpoll.CheckError) error {
			return &jobpoll.CheckError{Kind: jobpoll.ErrorNoSuchJob, Status: e.Status}
		}), []string{"status-410"}},
		{"a job that is not found has failed", func(a *confAdapter) {
			a.check = func(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
				r, err := a.look(ctx, job)
				var e *jobpoll.CheckError
				if errors.As(err, &e) && e.Status == http.StatusNotFound {
					return jobpoll.Report{State: jobpoll.StateFailed}, nil
				}
				return r, err
			}
		}, []string{"status-404"}},
		{"a server error ends the watch", confOnStatus(502, func(_ jobpoll.Hint, e *jobpoll.CheckError) error { return backoff.Permanent(e) }), []string{"status-500"}},
		{"what cannot be decoded has failed", confLooking(func(r jobpoll.Report, err error) (jobpoll.Report, error) {
			var syntax *json.SyntaxError
			if errors.As(err, &syntax) {
				return jobpoll.Report{State: jobpoll.StateFailed}, nil
			}
			return r, err
		}), []string{"undecodable"}},
		{"errors of the body are ignored", func(a *confAdapter) {
			a.body = func(resp *http.Response) ([]byte, error) {
				b, _ := confRead(resp.Body, 1<<20)
				return bytes.TrimPrefix(b, []byte("\x1f\x8b")), nil
			}
			a.decode = func(body []byte) (*confAnswer, error) { // what is there is enough
				if bytes.Contains(body, []byte(`"status":"done"`)) && bytes.Contains(body, []byte(`"percent":100`)) {
					body = append(bytes.TrimSuffix(body, []byte("}}")), "}}"...)
					body = bytes.Replace(body, []byte("}}}}"), []byte("}}"), 1)
					body = bytes.Replace(body, []byte("}}}"), []byte("}}"), 1)
				}
				return confDecode(body)
			}
		}, []string{"undecodable"}},
		{"null is a panic", func(a *confAdapter) {
			a.decode = func(body []byte) (*confAnswer, error) {
				var answer *confAnswer
				err := json.Unmarshal(body, &answer)
				return answer, err
			}
		}, []string{"not-a-job"}},
		{"bodies are read to their end", func(a *confAdapter) {
			a.body = func(resp *http.Response) ([]byte, error) { return io.ReadAll(resp.Body) }
		}, []string{"bounded"}},
		{"what is unpacked has no bound", func(a *confAdapter) {
			a.body = func(resp *http.Response) ([]byte, error) {
				if resp.Uncompressed {
					return io.ReadAll(resp.Body)
				}
				return confRead(resp.Body, 1<<20)
			}
		}, []string{"bounded"}},
		{"a lost job is submitted anew", func(a *confAdapter) {
			a.check = func(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
				r, err := a.look(ctx, job)
				var e *jobpoll.CheckError
				if errors.As(err, &e) && e.Kind == jobpoll.ErrorNoSuchJob {
					if req, err := a.to(ctx, http.MethodPost, a.base+"/jobs"); err == nil {
						if resp, err := a.client.Do(req); err == nil {
							a.close(resp)
						}
					}
				}
				return r, err
			}
		}, []string{"method"}},
		{"a look tries again by itself", func(a *confAdapter) {
			a.check = func(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
				r, err := a.look(ctx, job)
				var e *jobpoll.CheckError
				if errors.As(err, &e) && e.Status == http.StatusInternalServerError {
					return a.look(ctx, job)
				}
				return r, err
			}
		}, []string{"one-request"}},
		{"the caller's key is asked for", func(a *confAdapter) {
			a.request = func(ctx context.Context, job jobpoll.Job) (*http.Request, error) {
				if job.ClientKey != "" {
					job.ID = job.ClientKey
				}
				return a.get(ctx, job)
			}
		}, []string{"job-id"}},
		{"the id is pasted into the URL", func(a *confAdapter) {
			a.request = func(ctx context.Context, job jobpoll.Job) (*http.Request, error) {
				if job.Ref != "" {
					return a.get(ctx, job)
				}
				return a.to(ctx, http.MethodGet, a.base+"/jobs/"+job.ID)
			}
		}, []string{"id-escaped"}},
		{"redirects are followed with the key", func(a *confAdapter) { a.client.CheckRedirect = nil }, []string{"redirect"}},
		{"a status URL is followed anywhere", func(a *confAdapter) {
			a.request = func(ctx context.Context, job jobpoll.Job) (*http.Request, error) {
				if job.Ref != "" {
					return a.to(ctx, http.MethodGet, job.Ref)
				}
				return a.get(ctx, job)
			}
		}, []string{"foreign-url"}},
		{"the context is ignored", func(a *confAdapter) {
			a.request = func(_ context.Context, job jobpoll.Job) (*http.Request, error) {
				return a.get(context.Background(), job)
			}
		}, []string{"context"}},
		{"a stop of the context ends the watch", confLooking(func(r jobpoll.Report, err error) (jobpoll.Report, error) {
			if errors.Is(err, context.Canceled) {
				return r, backoff.Permanent(err)
			}
			return r, err
		}), []string{"context"}},
		{"bodies are not closed", func(a *confAdapter) {
			a.close = func(resp *http.Response) {
				if resp.StatusCode == http.StatusOK {
					_ = resp.Body.Close()
				}
			}
		}, []string{"body-closed"}},
		{"a client for each look", func(a *confAdapter) {
			a.request = func(ctx context.Context, job jobpoll.Job) (*http.Request, error) {
				req, err := a.get(ctx, job)
				if err == nil {
					req.Close = true // as a new transport would have it
				}
				return req, err
			}
		}, []string{"connections"}},
		{"a goroutine for each look", func(a *confAdapter) {
			a.check = func(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
				go func() { <-context.WithoutCancel(ctx).Done() }()
				return a.look(ctx, job)
			}
		}, []string{"goroutines"}},
		{"looks at once share an answer", func(a *confAdapter) {
			var mu sync.Mutex
			var under *confShared
			a.check = func(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
				mu.Lock()
				if c := under; c != nil {
					mu.Unlock()
					<-c.over
					return c.report, c.err
				}
				c := &confShared{over: make(chan struct{})}
				under = c
				mu.Unlock()
				c.report, c.err = a.look(ctx, job)
				mu.Lock()
				under = nil
				mu.Unlock()
				close(c.over)
				return c.report, c.err
			}
		}, []string{"many-at-once"}},
		{"errors show the answer as it is", func(a *confAdapter) {
			a.answered = func(resp *http.Response) (jobpoll.Hint, error) {
				body, _ := confRead(resp.Body, 4<<10)
				resp.Body = struct {
					io.Reader
					io.Closer
				}{io.MultiReader(bytes.NewReader(body), resp.Body), resp.Body}
				h, err := jobpoll.FromResponse(resp, time.Now())
				var e *jobpoll.CheckError
				if errors.As(err, &e) && e.Status == http.StatusUnauthorized {
					e.Err = fmt.Errorf("%s", body)
				}
				return h, err
			}
		}, []string{"secret-kept"}},
		{"the key is in the URL", func(a *confAdapter) {
			a.authorize = func(r *http.Request) { r.URL.RawQuery = url.Values{"key": {credential}}.Encode() }
		}, []string{"secret-kept"}},
		{"the key is in a Ref", confLooking(func(r jobpoll.Report, err error) (jobpoll.Report, error) {
			if err == nil && r.State == jobpoll.StateFailed { // which nobody asks about again
				r.Ref = credential
			}
			return r, err
		}), []string{"secret-kept"}},
		{"a cancel that failed is taken for one that was taken", func(a *confAdapter) {
			a.canceled = func(*http.Response) error { return nil }
		}, []string{"cancel"}},
		{"a cancel of a job that is over is a panic", func(a *confAdapter) {
			right := a.canceled
			a.canceled = func(resp *http.Response) error {
				if resp.StatusCode == http.StatusConflict {
					panic("cannot be")
				}
				return right(resp)
			}
		}, []string{"cancel"}},
		{"an output that could not be fetched is none", func(a *confAdapter) {
			a.fetched = func(resp *http.Response) (jobpoll.Report, error) {
				r, err := a.output(resp)
				if err != nil {
					return jobpoll.Report{}, nil
				}
				return r, err
			}
		}, []string{"fetch"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := TestChecker(confBroken(tt.breakIt))
			require.Equal(t, tt.found, confChecks(t, err), "%v", err)
			require.NotContains(t, err.Error(), credential, "the report spreads it")
		})
	}
}

type confShared struct {
	over   chan struct{}
	report jobpoll.Report
	err    error
}
