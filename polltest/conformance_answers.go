package polltest

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/jobpoll/jobpoll"
)

// crowd is how many jobs are looked at at once.
const crowd = 32

// reply answers with a, about the job that is asked for. A second request about
// the same job, to another URL, is the one for the output.
func (s *stage) reply(a Answer) reply {
	var mu sync.Mutex
	first := map[string]string{} // URL by job
	return func(w http.ResponseWriter, q *asked) {
		job, _ := s.asksFor(q)
		mu.Lock()
		status := cmp.Or(first[job.ID], q.url)
		first[job.ID] = status
		mu.Unlock()
		if s.kit.Output != nil && q.url != status {
			s.write(w, *s.kit.Output, job)
			return
		}
		s.write(w, a, job)
	}
}

// asksFor finds the job that a request is about.
func (s *stage) asksFor(q *asked) (jobpoll.Job, bool) {
	found, size := s.job(0), 0
	for _, job := range s.jobs {
		for _, name := range []string{job.ID, strings.TrimPrefix(job.Ref, s.target.URL)} {
			if len(name) > size && q.names(name) {
				found, size = job, len(name)
			}
		}
	}
	return found, size > 0
}

// write writes an answer about a job.
func (s *stage) write(w http.ResponseWriter, a Answer, job jobpoll.Job) {
	body := s.filled(a.Body, job)
	for name, values := range a.Header {
		for _, v := range values {
			w.Header().Add(name, s.filled(v, job))
		}
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	if w.Header().Get("Content-Length") == "" {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	w.WriteHeader(cmp.Or(a.Status, http.StatusOK))
	_, _ = w.Write([]byte(body))
}

func (s *stage) filled(text string, job jobpoll.Job) string {
	return strings.NewReplacer("{id}", job.ID, "{base}", s.target.URL).Replace(text)
}

// with is the answer with one more header.
func (a Answer) with(name, value string) Answer {
	a.Header = maps.Clone(a.Header)
	if a.Header == nil {
		a.Header = http.Header{}
	}
	a.Header.Set(name, value)
	return a
}

// word is the provider's word in the body; empty where there is none that can
// be put in another's place.
func (a Answer) word() string {
	if w := a.Want.RawStatus; w != "" && a.withWord("") != a.Body {
		return w
	}
	return ""
}

// withWord is the body with another word, where the word is a value.
func (a Answer) withWord(word string) string {
	quoted, _ := json.Marshal(a.Want.RawStatus)
	instead, _ := json.Marshal(word)
	var b strings.Builder
	rest := a.Body
	for {
		before, after, ok := strings.Cut(rest, string(quoted))
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		if strings.HasPrefix(strings.TrimLeft(after, " \t\r\n"), ":") {
			b.Write(quoted) // a key
		} else {
			b.Write(instead)
		}
		rest = after
	}
}

// variant is a body of which one value was changed.
type variant struct{ what, body string }

// absurdNumbers are what a number can be by fault or by malice.
var absurdNumbers = []string{"-1", "1e308", "9223372036854775808", "-9223372036854775808", `"NaN"`, "null", "true", "{}", `""`}

// absurd are bodies in which a number, or the word, is something absurd; none if
// the body is no JSON.
func (a Answer) absurd() []variant {
	const mostPlaces = 16
	d := json.NewDecoder(strings.NewReader(a.Body))
	d.UseNumber()
	var root any
	if d.Decode(&root) != nil {
		return nil
	}
	var all []variant
	places := 0
	var visit func(path string, v any, set func(any))
	visit = func(path string, v any, set func(any)) {
		var instead []string
		switch v := v.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				visit(path+"."+key, v[key], func(x any) { v[key] = x })
			}
		case []any:
			for i := range v {
				visit(fmt.Sprintf("%s[%d]", path, i), v[i], func(x any) { v[i] = x })
			}
		case json.Number:
			instead = absurdNumbers
		case string:
			if v == a.Want.RawStatus && v != "" {
				instead = []string{"null", "7", "{}", "[]", `""`}
			}
		}
		if len(instead) == 0 {
			return
		}
		if places++; places > mostPlaces {
			return
		}
		for _, raw := range instead {
			set(json.RawMessage(raw))
			if body, err := json.Marshal(root); err == nil {
				all = append(all, variant{fmt.Sprintf("a pending answer in which %s is %s", strings.TrimPrefix(path, "."), raw), string(body)})
			}
		}
		set(v)
	}
	visit("", root, func(any) {})
	return all
}

// gzipped is n times a mebibyte of spaces, compressed.
func gzipped(n int) []byte {
	var one bytes.Buffer
	z, _ := gzip.NewWriterLevel(&one, gzip.BestSpeed)
	_, _ = z.Write(bytes.Repeat([]byte(" "), 1<<20))
	_ = z.Close()
	return bytes.Repeat(one.Bytes(), n) // members follow each other
}

// sameJSON reports whether two texts are the same JSON value.
func sameJSON(a, b []byte) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	one, _ := json.Marshal(x)
	two, _ := json.Marshal(y)
	return bytes.Equal(one, two)
}

// written is a report as it is stored; it says so where it cannot be.
func written(r jobpoll.Report) string {
	b, err := json.Marshal(r)
	if err != nil {
		return "encoding/json cannot write it: " + err.Error()
	}
	return string(b)
}
