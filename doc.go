// Package jobpoll learns the end of asynchronous jobs at a provider: video
// renders and the like, that are submitted, get an id, and are done seconds or
// tens of minutes later. One Poller watches any number of them inside your
// process, asks about each as seldom as it can and as soon as it is worth it,
// keeps the account under its rate limits, and tells every end once, with the
// reason. It needs no server, no database, and no goroutine for a job that waits.
//
// # A first example
//
// An adapter answers one question: what does the provider say of this job now?
// A job that is not done is an ordinary answer; a failed call is an error.
//
//	checker := jobpoll.CheckerFunc(func(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
//		status, err := client.Status(ctx, job.ID) // your client of the provider
//		if err != nil {
//			return jobpoll.Report{}, err // looked at again, a little later
//		}
//		return jobpoll.Report{State: stateOf(status.Word), RawStatus: status.Word, Progress: status.Percent / 100}, nil
//	})
//
// To wait for one job, this is all:
//
//	outcome, err := jobpoll.Wait(ctx, checker, jobpoll.Job{ID: "abc", Expected: time.Minute})
//
// A service makes one Poller, runs it, and gives it jobs at any time:
//
//	p, err := jobpoll.New(jobpoll.Config{
//		Routes:    []jobpoll.Route{{Name: "render", Checker: checker}},
//		Callbacks: jobpoll.Callbacks{OnStop: func(ctx context.Context, o jobpoll.Outcome) error { return save(ctx, o) }},
//	})
//	if err != nil {
//		return err
//	}
//	go p.Run(ctx)
//	err = p.Watch(ctx, jobpoll.Job{Route: "render", ID: "abc", Profile: "model-1/1080p/5s", Expected: time.Minute})
//
// Two pure calls decide everything, and can be used without a Poller, from a
// cron or a worker of a queue: Track.Observe takes an answer into the memory of
// a job, Schedule.Next says when to look again or why to stop.
//
// Submit does both, with Job.ClientKey for a name until there is an id: the intent
// is stored, the call made once, the id stored, the job watched. Where the answer to
// the call is lost, a Reconciler looks for the job, and if it cannot tell, a person
// does (Resolve). Nothing is ever submitted a second time by the library.
//
// # The four vocabularies
//
// Each is closed, has names for people (String) that encoding/json writes too,
// and reads a name that it does not know as unknown.
//
// State is what the provider says of the job.
//
//	StateUnknown     no word, or one that the adapter does not know: watched on
//	StateQueued      accepted, not begun
//	StateRunning     being made
//	StateSucceeded   done, with a result
//	StateFailed      done, without one; Report.Failure says why
//	StateCanceled    called off at the provider
//	StateExpired     given up by the provider
//
// FailureKind is why the provider failed the job.
//
//	FailureUnknown   it did not say
//	FailureFault     its own fault
//	FailureRejected  the input was not acceptable
//	FailureFiltered  the result was held back by a filter
//	FailureQuota     no quota or credit left
//	FailurePolicy    not allowed for this account
//	FailureNoOutput  it says done, but there is nothing: looked at once more
//
// ErrorKind is what a failed look means.
//
//	ErrorNone        the look did not fail
//	ErrorTransient   may pass: back off, look again; what a plain error means
//	ErrorRateLimited too many calls: the scope cools down
//	ErrorConcurrency too many jobs at once: the scope cools down
//	ErrorQuota       no quota or credit left: stop
//	ErrorAuth        credentials refused: one refresh, then a probe a minute
//	ErrorInvalid     the request is wrong: stop
//	ErrorPolicy      refused for this account: stop
//	ErrorNoSuchJob   the provider does not know the job: grace, then look it up
//	ErrorGone        it was there and has been removed: stop
//	ErrorUnknown     a name written by a newer version
//
// Reason is why a watch ended. To stop watching is not to say that the job
// failed: with a reason marked * the remote job may still bring its result, and
// the same id can be watched again.
//
//	ReasonNone              it has not ended
//	ReasonSucceeded         the provider: succeeded
//	ReasonFailed            the provider: failed
//	ReasonCanceled          the provider: canceled
//	ReasonExpired           the provider: expired
//	ReasonDeadline        * StopRules.MaxAge or Job.Deadline
//	ReasonQueueLimit      * too long in the queue (MaxQueued)
//	ReasonProcessingLimit * too long in the making (MaxProcessing)
//	ReasonNoProgress      * the progress stands still (NoProgress)
//	ReasonUnreachable     * too many failed looks in a row (MaxErrors)
//	ReasonRateLimited     * the provider's wait outlasts the limit
//	ReasonAuth            * credentials refused for too long (AuthGrace)
//	ReasonInvalid         * the provider refuses the look
//	ReasonQuota           * no quota or credit left
//	ReasonLost              the provider does not know the job (MissingGrace)
//	ReasonResultExpired     the job was there and has been removed
//	ReasonUnknownStatus   * a word that the adapter does not know, for too long (UnknownFor)
//	ReasonAmbiguous         a submission that the provider may have taken (Poller.Resolve)
//	ReasonNotSent           a submission that surely came to nothing
//	ReasonAbandoned       * you stopped watching
//	ReasonUnknown           a name written by a newer version
//
// # Time
//
// Everything runs on Config.Clock; nil is package time, which also makes a
// Poller work inside a testing/synctest bubble, even one that was made outside.
// Package polltest has a clock that tests move by hand. Durations are measured
// on the monotonic clock, so a step of the wall clock neither fires nor delays
// a look by itself; what is told and stored is wall time. A job is never looked
// at before its floor: the provider's wait, a cool-down, the least gap. The
// pure core has no clock at all: it is given the instant.
//
// # Concurrency
//
// All methods of a Poller may be called from any goroutine, before, during and
// after Run, and from your own callbacks. Your code is never called under a
// lock. For one job nothing of it runs twice at once; for different jobs it
// runs in parallel, so a slow callback delays no other job. A panic in it is
// contained, counted and told to Hooks.Panicked. Run returns when its context
// has ended and all its goroutines have.
//
// # Logs
//
// A Job, Report, Outcome, Update, JobInfo, SubmissionInfo, Notice and every event
// of Hooks can be given to package slog as they are (LogValue): a line then has
// what one looks for (route, id, client_key, reason, polls, …) by names as those
// of a Job or an Outcome in JSON, nothing that is zero, of an Output the length, no
// Ref, and texts of others as Excerpt gives them. %v of what is told of a job is one
// line for people (String). What encoding/json writes is whole; fields of events
// have the names of Go there.
//
// # Errors to match
//
// Wait returns nil if and only if the job succeeded. Otherwise errors.Is
// matches the Reason itself, and errors.As a *StopError, whose Outcome has the
// id and all that is known:
//
//	switch _, err := p.Wait(ctx, job); {
//	case err == nil:
//		// there is a result
//	case errors.Is(err, jobpoll.ReasonFailed):
//		// the provider failed it
//	case errors.Is(err, jobpoll.ReasonDeadline):
//		// it may still finish: keep the id, watch it again
//	case errors.Is(err, context.Canceled), errors.Is(err, jobpoll.ErrShutdown):
//		// the waiting ended, not the job
//	}
//
// Watch matches ErrResolved (errors.As a *ResolvedError has the outcome),
// ErrUnknownRoute, ErrDuplicateKey, and ErrNotOwner while another Poller has the
// lease of the Store; PollNow, Abandon and Cancel match
// ErrUnknownJob, Cancel ErrNoCanceler too; Notify matches ErrNotTaken when the
// sender should try again; Run returns ErrRunning when it runs already. A
// Checker says what a failed look means with a *CheckError, most easily the one
// that FromResponse makes, or ends a job with backoff.Permanent.
package jobpoll
