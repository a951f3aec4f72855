// Package polltest is for tests of code that uses jobpoll: a manual clock, a
// scripted provider, a harness that runs a Poller on both, kits that try adapters
// and stores, and a store that fails as a test wants it.
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
// A submission is tested alike: Provider.Send takes it as the test says, also so
// that the answer is lost, Provider.Finder looks it up, and Harness.BeginSubmit
// waits for it without holding up the clock.
//
// There is nothing to sleep for and nothing to retry: Advance returns when
// everything that it set off is done.
//
// # An adapter of your own
//
// TestChecker tries an adapter over HTTP against what jobpoll expects of a
// Checker. You give it a way to make the adapter and what your provider really
// answers; it serves that on a loopback port, with variations and faults, and
// returns all that it found, each with what was tried, what the adapter did, what
// was expected, why, and where to read on.
//
//	func TestAdapter(t *testing.T) {
//		err := polltest.TestChecker(polltest.Adapter{
//			New:       func(p polltest.Target) jobpoll.Checker { return newRenderer(p.URL, p.Client, p.Credential) },
//			Pending:   polltest.Answer{Body: `{"status":"rendering","percent":40}`, Want: jobpoll.Report{RawStatus: "rendering", Progress: 0.4}},
//			Succeeded: polltest.Answer{Body: `{"status":"done","url":"https://cdn.example/{id}.mp4"}`, Want: jobpoll.Report{RawStatus: "done"}},
//			Failed: polltest.Answer{Body: `{"status":"failed","error":"the renderer crashed"}`, Want: jobpoll.Report{
//				RawStatus: "failed",
//				Failure:   &jobpoll.Failure{Message: "the renderer crashed"}, // no kind: the provider tells none
//			}},
//			Logf: t.Logf,
//		})
//		require.NoError(t, err)
//	}
//
// These are its checks; those marked * are made where the Adapter has what they
// need.
//
//	pending             a job that is not done is no error and no end
//	succeeded           done is seen as done
//	failed              failed is an answer, and no failed look
//	canceled *          and so on for the other ends
//	expired *
//	filtered *          held back is failed, of kind FailureFiltered
//	no-output *         done with nothing is failed, of kind FailureNoOutput
//	failure             a failure has a kind and a message, or those of
//	                    Failed.Want.Failure where the provider tells less
//	progress            0 to 1
//	queue-position      counted from 1
//	times               no negative waits, no end before the begin
//	output *            the output is the provider's
//	ref *               the reference is the provider's
//	json                reports survive encoding/json
//	no-memory           the same answer is the same report, whatever came before
//	raw-status          the provider's word is kept
//	unknown-word *      a word that nobody knows ends nothing, and is kept
//	word-case *         words mean the same in any case, the kind of failure too
//	absurd-values       numbers and words that cannot be; a wait that overflows is one
//	status-400          400 and 422: ErrorInvalid
//	status-401          ErrorAuth
//	status-402          ErrorQuota
//	status-403          ErrorPolicy, or ErrorAuth
//	status-404          ErrorNoSuchJob
//	status-410          ErrorGone
//	status-429          ErrorRateLimited
//	status-500          500, 502, 503, 504, 408, with JSON and HTML: ErrorTransient
//	errors *            Adapter.Errors
//	rate-limit-wait     Retry-After of a 429, in seconds and as a date
//	unavailable-wait    Retry-After of a 503
//	pending-wait        Retry-After of a pending answer
//	undecodable         empty, HTML, cut, too deep: an error that may pass
//	not-a-job           JSON that is no object: never an end
//	bounded             a body without an end, and one that unpacks to much
//	method              a look sends nothing that could submit
//	one-request         a look that is refused does not try again by itself
//	job-id              the job's ID is asked for, and not the ClientKey
//	id-escaped          an ID with characters of URLs and of JSON comes as it is
//	redirect            the credential does not follow a redirect to another host
//	foreign-url *       nor a status URL on another host
//	context             a look ends with its context
//	body-closed         bodies are closed
//	connections         connections are used again
//	goroutines          no look leaves one
//	many-at-once        32 jobs at once are not mixed up
//	cancel *            Canceler: refused is an error, over is no panic
//	fetch *             Fetcher: the output, and errors that may pass
//	batch *             BatchChecker: all ids are asked for, each job is told as by
//	                    Check, one request, errors of the call
//	secret-kept         the credential is in no error and no report
//	secret-not-printed  nor in what fmt makes of the adapter
//
// # A store of your own
//
// TestStore tries a jobpoll.Store, and a jobpoll.Leaser if it is one, against
// all that their documentation promises, and returns what it found in the same
// form:
//
//	err := polltest.TestStore(polltest.Stores{
//		New:  func(c jobpoll.Clock) (jobpoll.Store, error) { return mystore.Open(newDatabase(t), c) },
//		Logf: t.Logf,
//	})
//
// These are its checks; those marked * are made of a Leaser, or with Stores.Again.
//
//	round-trip          what Get and Load give is what was put
//	not-found           jobpoll.ErrNotFound for what is not there
//	replace             a record replaces another as a whole, whatever its Rev
//	delete              nil Data deletes, empty Data does not
//	batch               of one key the last counts; the slice stays as it was
//	ids                 IDs of any bytes, of any length, in any case
//	kinds               kinds that are not known yet; one ID in several
//	bytes               Data comes back as the same bytes
//	large               4 MiB, and 128 records at once
//	times               zero, to the microsecond, in UTC
//	expiry              on the clock
//	no-sharing          buffers of the caller and of the store are two
//	context             calls with a context that has ended
//	load                all, each once
//	load-left           a loop that is left frees what it held
//	load-inside         Put, Get and Load within a loop
//	load-context        an end before the end is an error
//	many-at-once        16 goroutines, on keys of their own and a shared one
//	load-while-writing  records that stay are seen
//	atomic              a batch that is cut off is written whole or not at all
//	lease *             one owner at a time
//	lease-lapses *      on the clock, unless renewed
//	lease-release *     by its owner alone
//	lease-race *        16 owners at once
//	fence *             an owner that was replaced cannot write
//	fence-whole *       nor a part of a batch
//	fence-race *        nor one that was just about to
//	again *             a second process sees what was put
//	again-lease *       and has no lease while the first has it
package polltest
