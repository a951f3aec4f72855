package polltest

import (
	"fmt"
	"strings"

	"github.com/jobpoll/jobpoll"
)

const seeWords = "go doc jobpoll.Words; README, What the provider says"

// newWord is a word that no adapter knows.
const newWord = "conformance_word_of_tomorrow"

// wordChecks try the provider's words, and values in their place.
var wordChecks = []check{{
	name:  "raw-status",
	needs: needPending,
	why:   "people and metrics see the provider's own word; without it a word that the adapter does not know cannot be found",
	see:   seeReport,
	run: func(s *stage) {
		s.eachGood(func(tried string, a Answer, r jobpoll.Report) {
			if want := a.Want.RawStatus; want != "" && r.RawStatus != want {
				s.fault(tried, fmt.Sprintf("reported the RawStatus %q", r.RawStatus), fmt.Sprintf("%q", want))
			}
		})
	},
}, {
	name:  "unknown-word",
	needs: needPending,
	why:   "providers add words: a job must not be given up, nor believed done, over a word that nobody knows; it is watched on, for a bounded time",
	see:   seeWords,
	lacks: lacksWord,
	run: func(s *stage) {
		kept := s.look(s.kit.Pending).report.RawStatus == s.kit.Pending.Want.RawStatus
		for _, word := range []string{newWord, "not_" + s.kit.Succeeded.Want.RawStatus, ""} {
			a := s.kit.Pending
			a.Body = a.withWord(word)
			got := s.look(a)
			tried := fmt.Sprintf("a pending answer with the word %q", word)
			switch {
			case word == "" && got.kind() == jobpoll.ErrorTransient && !permanent(got.err) && !got.broken():
				// An answer without a word may be none.
			case got.broken() || got.err != nil || got.report.State.Terminal():
				s.fault(tried, got.String(), "no error, and a state that is not terminal")
			case kept && strings.TrimSpace(got.report.RawStatus) != word:
				s.fault(tried, got.String(), "the word in RawStatus")
			}
		}
	},
}, {
	name:  "word-case",
	needs: needAll,
	why:   "gateways pass words on in a case of their own, and callbacks of a provider may have another than its status call",
	see:   seeWords,
	lacks: lacksWord,
	run: func(s *stage) {
		s.eachGood(s.inEachCase)
		for _, end := range s.kit.ends() {
			if got := s.look(end.answer); !got.broken() && got.err == nil { // else others tell
				s.inEachCase(end.tried, end.answer, got.report)
			}
		}
	},
}, {
	name:  "absurd-values",
	needs: needPending,
	why:   "what a provider says by fault must neither end a job nor the process",
	see:   "README, What the provider says",
	run: func(s *stage) {
		for _, v := range s.kit.Pending.absurd() {
			a := s.kit.Pending
			a.Body = v.body
			got := s.look(a)
			switch {
			case got.broken() || got.err == nil && got.report.State == jobpoll.StateSucceeded:
				s.fault(v.what, got.String(), "an error that may pass, or a report that does not say succeeded")
			case got.err == nil && strings.HasPrefix(written(got.report), "encoding/json"):
				s.fault(v.what, "reported what "+written(got.report), "a Report that encoding/json can write")
			case got.err == nil && (got.report.Remaining < 0 || got.report.Hint.RetryAfter < 0):
				s.fault(v.what, fmt.Sprintf("reported a negative wait: Remaining %v, Hint.RetryAfter %v", got.report.Remaining, got.report.Hint.RetryAfter),
					"none, or one that is bounded; a large number of seconds most likely overflowed as a time.Duration: bound the number before it is multiplied")
			}
		}
	},
}}

// inEachCase looks at an answer with its word in other cases: state and kind of
// failure must stay those of r.
func (s *stage) inEachCase(name string, a Answer, r jobpoll.Report) {
	if a.word() == "" {
		return
	}
	for _, word := range []string{strings.ToUpper(a.word()), strings.ToLower(a.word()), " " + a.word() + "\n"} {
		b := a
		b.Body = a.withWord(word)
		tried, want := fmt.Sprintf("%s with the word %q", name, word), fmt.Sprintf("the state %q", r.State)
		switch got := s.look(b); {
		case got.broken() || got.err != nil || got.report.State != r.State:
			s.fault(tried, got.String(), fmt.Sprintf("no error, and %s as for %q", want, a.word()))
		case failureKind(got.report) != failureKind(r):
			s.fault(tried, fmt.Sprintf("reported a failure of kind %q", failureKind(got.report)), fmt.Sprintf("the kind %q as for %q", failureKind(r), a.word()))
		}
	}
}

func failureKind(r jobpoll.Report) jobpoll.FailureKind {
	if r.Failure == nil {
		return jobpoll.FailureUnknown
	}
	return r.Failure.Kind
}

// ends are the answers about jobs that ended in other ways than Succeeded and Failed.
func (a *Adapter) ends() []tried {
	var all []tried
	for _, end := range []struct {
		field  string
		answer *Answer
	}{{"Canceled", a.Canceled}, {"Expired", a.Expired}, {"Filtered", a.Filtered}, {"NoOutput", a.NoOutput}} {
		if end.answer != nil {
			all = append(all, tried{"the answer " + end.field, *end.answer})
		}
	}
	return all
}

func lacksWord(a *Adapter) string {
	if a.Pending.word() == "" {
		return "Adapter.Pending.Want.RawStatus is not a text in Adapter.Pending.Body"
	}
	return ""
}
