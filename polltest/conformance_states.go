package polltest

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/jobpoll/jobpoll"
)

const seeReport = "go doc jobpoll.Report; README, What the provider says"

var stateChecks = []check{{
	name: "pending",
	why:  "a job that is not done is an ordinary answer; as an error it would use up the error budget, as an end it would be given up while it is paid for",
	see:  "go doc jobpoll.Checker; README, What the provider says",
	run: func(s *stage) {
		got := s.look(s.kit.Pending)
		want := s.kit.Pending.Want.State
		if got.broken() || got.err != nil || got.report.State.Terminal() || want != jobpoll.StateUnknown && got.report.State != want {
			s.fault("the answer Pending", got.String(), "no error, and "+wanted(want, "a state that is not terminal"))
		}
	},
}, {
	name: "succeeded",
	why:  "a result that is not seen as one is polled for until the deadline, and never used",
	see:  seeReport,
	run:  func(s *stage) { s.mustEnd("Succeeded", s.kit.Succeeded, jobpoll.StateSucceeded) },
}, {
	name: "failed",
	why:  "that the provider failed the job is its answer, and no failed look: as an error it would be asked for again and again",
	see:  seeReport,
	run:  func(s *stage) { s.mustEnd("Failed", s.kit.Failed, jobpoll.StateFailed) },
}, endCheck("canceled", "Canceled", jobpoll.StateCanceled, func(a *Adapter) *Answer { return a.Canceled }),
	endCheck("expired", "Expired", jobpoll.StateExpired, func(a *Adapter) *Answer { return a.Expired }),
	failureCheck("filtered", "Filtered", jobpoll.FailureFiltered, func(a *Adapter) *Answer { return a.Filtered },
		"a result held back by a filter will be held back again: taken for a success it has nothing, taken for a fault it is bought again"),
	failureCheck("no-output", "NoOutput", jobpoll.FailureNoOutput, func(a *Adapter) *Answer { return a.NoOutput },
		"done with nothing is looked at once more and then failed; believed as a success it hands nothing on"),
	{
		name:  "failure",
		needs: needFailed,
		why:   "the kind decides whether the work may be submitted anew without paying twice, and people need the provider's words",
		see:   "go doc jobpoll.Failure; go doc jobpoll.FailureKind",
		run:   checkFailure,
	},
}

func wanted(state jobpoll.State, otherwise string) string {
	if state == jobpoll.StateUnknown {
		return otherwise
	}
	return fmt.Sprintf("the state %q", state)
}

// mustEnd looks at an answer that ends the job.
func (s *stage) mustEnd(name string, a Answer, state jobpoll.State) seen {
	got := s.look(a)
	if a.Want.State != jobpoll.StateUnknown {
		state = a.Want.State
	}
	if got.broken() || got.err != nil || got.report.State != state {
		s.fault("the answer "+name, got.String(), fmt.Sprintf("no error, and the state %q", state))
	}
	return got
}

func endCheck(name, field string, state jobpoll.State, answer func(a *Adapter) *Answer) check {
	return check{
		name: name,
		why:  "an end that is not known as one is polled for until the deadline",
		see:  seeReport,
		lacks: func(a *Adapter) string {
			if answer(a) == nil {
				return "there is no Adapter." + field
			}
			return ""
		},
		run: func(s *stage) { s.mustEnd(field, *answer(&s.kit.Adapter), state) },
	}
}

func failureCheck(name, field string, kind jobpoll.FailureKind, answer func(a *Adapter) *Answer, why string) check {
	c := endCheck(name, field, jobpoll.StateFailed, answer)
	c.why = why
	c.run = func(s *stage) {
		got := s.look(*answer(&s.kit.Adapter))
		f := got.report.Failure
		if got.broken() || got.err != nil || got.report.State != jobpoll.StateFailed || f == nil || f.Kind != kind {
			s.fault("the answer "+field, got.String(), fmt.Sprintf("no error, the state %q, and a Failure of kind %q", jobpoll.StateFailed, kind))
		}
	}
	return c
}

func checkFailure(s *stage) {
	got := s.look(s.kit.Failed)
	f, want := got.report.Failure, s.kit.Failed.Want.Failure
	switch {
	case f == nil:
		s.fault("the answer Failed", "reported no Failure", "a Failure with its kind and the provider's words")
	case want == nil && (f.Kind == jobpoll.FailureUnknown || f.Message == ""):
		s.fault("the answer Failed", fmt.Sprintf("reported the failure %q", f), "a kind that is known, and a message; where the provider tells less, say so: Failed has "+
			wantFailure(*f)+"; no FailureFault on a guess: it advises that to submit anew is safe")
	case want != nil && (f.Kind != want.Kind || want.Code != "" && f.Code != want.Code || !strings.Contains(f.Message, want.Message)):
		s.fault("the answer Failed", fmt.Sprintf("reported the failure %q", f), fmt.Sprintf("%q", want))
	}
}

// wantFailure is what says in an Answer that a failure is as it should be.
func wantFailure(f jobpoll.Failure) string {
	if f.Message == "" {
		return fmt.Sprintf("Want: jobpoll.Report{Failure: &jobpoll.Failure{Kind: …}}, with the kind %q", f.Kind)
	}
	return fmt.Sprintf("Want: jobpoll.Report{Failure: &jobpoll.Failure{Message: %q}}", clip(f.Message))
}

// detailChecks look at what a report says besides its state.
var detailChecks = []check{{
	name:  "progress",
	needs: needPending,
	why:   "progress plans the next look: on a scale of 0 to 100 every job is nearly done at one per cent",
	see:   seeReport,
	run: func(s *stage) {
		s.eachGood(func(tried string, a Answer, r jobpoll.Report) {
			const rounding = 1e-6
			switch want := a.Want.Progress; {
			case math.IsNaN(r.Progress) || r.Progress < 0 || r.Progress > 1:
				s.fault(tried, fmt.Sprintf("reported the progress %v", r.Progress), "0 to 1 (a provider's percentage is divided by 100); 0 where it is not told")
			case want != 0 && math.Abs(r.Progress-want) > rounding:
				s.fault(tried, fmt.Sprintf("reported the progress %v", r.Progress), fmt.Sprint(want))
			}
		})
	},
}, {
	name:  "queue-position",
	needs: needPending,
	why:   "0 means that no place is told: the head of a queue that counts from 0 would vanish, and a better place resets the backoff",
	see:   seeReport,
	run: func(s *stage) {
		s.eachGood(func(tried string, a Answer, r jobpoll.Report) {
			if want := a.Want.QueuePosition; r.QueuePosition < 0 || want != 0 && r.QueuePosition != want {
				s.fault(tried, fmt.Sprintf("reported the place %d in the queue", r.QueuePosition), fmt.Sprintf("%d, counted from 1 (0 is for: not told)", max(want, 0)))
			}
		})
	},
}, {
	name:  "times",
	needs: needPending,
	why:   "the next look, measured durations and detection delays are planned on them",
	see:   seeReport,
	run: func(s *stage) {
		s.eachGood(func(tried string, a Answer, r jobpoll.Report) {
			for _, d := range []struct {
				field     string
				got, want int64
			}{{"Remaining", int64(r.Remaining), int64(a.Want.Remaining)}, {"Hint.RetryAfter", int64(r.Hint.RetryAfter), int64(a.Want.Hint.RetryAfter)}} {
				if d.got < 0 || d.want != 0 && d.got != d.want {
					s.fault(tried, fmt.Sprintf("reported a %s of %d ns", d.field, d.got), fmt.Sprintf("%d ns, and never less than none", max(d.want, 0)))
				}
			}
			if !r.StartedAt.IsZero() && !r.CompletedAt.IsZero() && r.CompletedAt.Before(r.StartedAt) {
				s.fault(tried, fmt.Sprintf("reported an end at %v before the begin at %v", r.CompletedAt, r.StartedAt), "an end that is not before the begin")
			}
		})
	},
}, {
	name:  "output",
	needs: needSucceeded,
	why:   "the output is what was paid for",
	see:   "go doc jobpoll.Report; go doc jobpoll.Fetcher",
	lacks: func(a *Adapter) string {
		if len(a.Succeeded.Want.Output) == 0 {
			return "there is no Adapter.Succeeded.Want.Output"
		}
		return ""
	},
	run: func(s *stage) {
		got := s.look(s.kit.Succeeded)
		want := s.filled(string(s.kit.Succeeded.Want.Output), s.job(0))
		if json.Valid(got.report.Output) && !sameJSON(got.report.Output, []byte(want)) || len(got.report.Output) == 0 {
			s.fault("the answer Succeeded", fmt.Sprintf("reported the output %q", clip(string(got.report.Output))), want)
		}
	},
}, {
	name:  "ref",
	needs: needPending,
	why:   "the reference is stored, and is the way to the job after a restart",
	see:   seeReport,
	lacks: func(a *Adapter) string {
		if a.Pending.Want.Ref == "" {
			return "there is no Adapter.Pending.Want.Ref"
		}
		return ""
	},
	run: func(s *stage) {
		got := s.look(s.kit.Pending)
		if want := s.filled(s.kit.Pending.Want.Ref, s.job(0)); got.report.Ref != want {
			s.fault("the answer Pending", fmt.Sprintf("reported the Ref %q", clip(got.report.Ref)), fmt.Sprintf("%q", want))
		}
	},
}, {
	name:  "json",
	needs: needAll,
	why:   "reports are stored: what encoding/json cannot write, or reads back as something else, is lost in a restart",
	see:   seeReport,
	run: func(s *stage) {
		s.eachGood(func(tried string, _ Answer, r jobpoll.Report) {
			once := written(r)
			var back jobpoll.Report
			if err := json.Unmarshal([]byte(once), &back); err != nil || written(back) != once {
				s.fault(tried, clip(once), "a Report that encoding/json writes, reads and writes as the same (no NaN, an Output that is JSON, valid UTF-8)")
			}
		})
	},
}, {
	name:  "no-memory",
	needs: needAll,
	why:   "one Checker serves all jobs, and the Poller keeps what has to be kept: an answer that depends on those before it is wrong after a restart",
	see:   "go doc jobpoll.Checker",
	run: func(s *stage) {
		first := map[string]string{}
		for _, round := range []string{"first", "second", "third"} {
			s.eachGood(func(tried string, _ Answer, r jobpoll.Report) {
				now := written(r)
				switch before, ok := first[tried]; {
				case !ok:
					first[tried] = now
				case before != now:
					s.fault(fmt.Sprintf("%s for the %s time, with other answers between", tried, round), clip(now), "the same as the first time: "+clip(before))
				}
			})
		}
	},
}}

// eachGood gives the reports of the answers that the adapter reads rightly.
func (s *stage) eachGood(f func(tried string, a Answer, r jobpoll.Report)) {
	for _, one := range []struct {
		tried  string
		needs  needs
		answer Answer
	}{{"the answer Succeeded", needSucceeded, s.kit.Succeeded}, {"the answer Pending", needPending, s.kit.Pending}, {"the answer Failed", needFailed, s.kit.Failed}} {
		if s.kit.misread&one.needs != 0 {
			continue
		}
		got := s.look(one.answer)
		if got.broken() || got.err != nil {
			s.fault(one.tried+", again", got.String(), "the same as before: no error")
			continue
		}
		f(one.tried, one.answer, got.report)
	}
}
