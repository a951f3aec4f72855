package polltest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jobpoll/jobpoll"
)

// secretChecks come last: they tell what was seen in all the others, too.
var secretChecks = []check{{
	name: "secret-kept",
	why:  "errors and reports are logged, stored and shown to people",
	see:  "go doc jobpoll.FromResponse; go doc net/url.Error (its text has the URL)",
	run: func(s *stage) {
		s.answers(s.kit.Pending)
		s.provider.close()
		s.lookAt(s.job(0)) // no connection: the error has the URL
		if !s.kit.sent {
			s.kit.Logf("polltest: secret-kept: tells little: the adapter never sent Target.Credential")
		}
		var told []string
		for _, l := range s.kit.leaks {
			if !slices.Contains(told, l.where) {
				told = append(told, l.where)
				s.fault("all that the adapter returned", fmt.Sprintf("had the credential in %s (first seen in the check %q)", l.where, l.check), "the credential in no error, no report, no panic")
			}
		}
	},
}, {
	name: "secret-not-printed",
	why:  "somebody will print the adapter, or a Config that has it",
	see:  "go doc fmt.Formatter",
	run: func(s *stage) {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
			var text string
			got := s.call(context.Background(), func(context.Context) (jobpoll.Report, error) {
				text = fmt.Sprintf(verb, s.checker)
				return jobpoll.Report{}, nil
			})
			if got.broken() {
				s.fault("fmt with "+verb+" of the adapter", got.String(), "some text")
				return
			}
			if holdsSecret(text) {
				s.fault("fmt with "+verb+" of the adapter", "printed the credential", "a text without it: a Format method, or the credential in a func or behind two pointers")
				return
			}
		}
	},
}}

// holdsSecret reports whether the credential is in a text, or enough of it to
// be of use.
func holdsSecret(text string) bool {
	const enough = 20
	return strings.Contains(text, credential[:enough]) || strings.Contains(text, credential[len(credential)-enough:])
}

// searchForLeaks looks for the credential in what a call returned.
func (s *stage) searchForLeaks(got seen) {
	r := got.report
	output := string(r.Output)
	r.Output = nil             // %v would print its bytes as numbers
	type fields jobpoll.Report // all of them, where String chooses
	places := []struct{ where, text string }{
		{"a report", fmt.Sprintf("%+v %+v %s", fields(r), r.Failure, output)},
		{"a panic", got.panicked},
	}
	if got.err != nil {
		places = append(places, struct{ where, text string }{"the text of an error", fmt.Sprintf("%s %+v", got.text, got.err)})
	}
	for _, p := range places {
		if holdsSecret(p.text) {
			s.kit.leaks = append(s.kit.leaks, leak{s.check.name, p.where})
		}
	}
}
