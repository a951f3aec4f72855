package provider

import (
	"encoding/json"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
)

const echoKey = "an-id:se/cret+<0123456789>=&\"é"

// echoes are the forms in which a credential may come back.
func echoes(key string) map[string]string {
	each := func(format string, byBytes bool) string {
		var b strings.Builder
		if byBytes {
			for _, c := range []byte(key) {
				fmt.Fprintf(&b, format, c)
			}
			return b.String()
		}
		for _, r := range key {
			fmt.Fprintf(&b, format, r)
		}
		return b.String()
	}
	quoted, _ := json.Marshal(key)
	inner := strings.Trim(string(quoted), `"`)
	twice, _ := json.Marshal(inner)
	return map[string]string{
		"as it is":           key,
		"JSON":               inner,
		"JSON in JSON":       strings.Trim(string(twice), `"`),
		"JSON, all escaped":  each(`\u%04x`, false),
		"JSON, upper case":   each(`\u%04X`, false),
		"JSON, slashes":      strings.ReplaceAll(inner, "/", `\/`),
		"a query":            url.QueryEscape(key),
		"a query, all of it": each("%%%02x", true),
		"a path":             url.PathEscape(key),
		"lower-case escapes": strings.ReplaceAll(strings.ReplaceAll(url.QueryEscape(key), "%2F", "%2f"), "%2B", "%2b"),
		"HTML":               html.EscapeString(key),
		"HTML, decimal":      each("&#%d;", false),
		"HTML, hexadecimal":  each("&#x%x;", false),
		"Go":                 strings.Trim(fmt.Sprintf("%+q", key), `"`),
	}
}

func TestASecretIsHiddenInEachFormThatItMayComeBackIn(t *testing.T) {
	s := newSecret(echoKey)
	for name, form := range echoes(echoKey) {
		require.Equal(t, "x … y", string(s.hide([]byte("x "+form+" y"))), name)
		require.Equal(t, "……", s.hideText(form+form), name)
	}
	for _, text := range []string{"", `\`, "%", "&", `\u`, `\u00`, "%2", "%zz", "&#;", "&#x;", "&;", "&#99999999;", "%ff%ff%ff%ff", echoKey[:20], strings.Repeat(`\`, 99), "id"} {
		require.Equal(t, text, string(s.hide([]byte(text))), "what is not it stays")
	}
	require.Equal(t, "the id", string(newSecret("id:0123456789abcdef").hide([]byte("the id"))), "a short half is a word")
	require.NotContains(t, string(newSecret("id:0123456789abcdef").hide([]byte("0123456789abcdef"))), "0123")
	require.Equal(t, "a test", string(newSecret("test").hide([]byte("a test"))), "so is a short secret")
}

// What jobpoll.Excerpt drops does not put a secret together again.
func TestASecretWithWhatNobodySeesInItIsHidden(t *testing.T) {
	s := newSecret(echoKey)
	for _, between := range []string{"\x8b", "\xff\xfe\xe2\x80", "\u200b", "\u202e\u00ad", "\x00", "\x1b", `\u200b`, `\u0000`, "&#8203;", "%E2%80%8B", "%00"} {
		form := strings.Join(strings.Split(echoKey, ""), between)
		require.Equal(t, "x … y", string(s.hide([]byte("x "+form+" y"))), "%q", between)
		require.Equal(t, "…", s.hideText(form), "%q", between)
		require.NotContains(t, jobpoll.Excerpt(string(s.hide([]byte("{"+form)))), "0123456789", "%q", between)
	}
	for _, between := range []string{" ", "-", "\n", "é", `\u0041`} {
		form := strings.Join(strings.Split(echoKey, ""), between)
		require.Equal(t, form, string(s.hide([]byte(form))), "%q: it is another text", between)
	}
	require.Equal(t, "\x8b\u200b", string(s.hide([]byte("\x8b\u200b"))))
}

// A provider that sends the credential back does not get it into anything that
// is logged or stored, in whatever form and place.
func TestNoReportHoldsTheCredential(t *testing.T) {
	for name, form := range echoes(echoKey) {
		if name == "Go" || name == "as it is" { // are not JSON
			continue
		}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("X-Fal-Error-Type", form)
			text := "not " + form
			switch {
			case strings.HasSuffix(r.URL.Path, "/status"):
				fmt.Fprintf(w, `{"status":"COMPLETED","error":"%s","error_type":"%s"}`, text, form)
			case strings.Contains(r.URL.Path, "/requests/"):
				w.WriteHeader(http.StatusUnprocessableEntity)
				fmt.Fprintf(w, `{"detail":"%s"}`, text)
			default:
				fmt.Fprintf(w, `{"status":"failed","error":"%s","code":200,"data":{"status":"failed","error":"%s","error_code":"%s"}}`, text, text, form)
			}
		}))
		for _, provider := range adapterNames {
			a := newAdapterFor(t, provider, Config{BaseURL: server.URL, Credentials: Secret(" " + echoKey + "\n")})
			job := jobpoll.Job{Route: "r", ID: "x", Ref: refFor(provider)}
			reports := []jobpoll.Report{}
			rep, err := a.Check(t.Context(), job)
			require.NoError(t, err)
			reports = append(reports, rep)
			if f, ok := a.(jobpoll.Fetcher); ok {
				rep, err := f.Fetch(t.Context(), job, rep)
				require.NoError(t, err)
				reports = append(reports, rep)
			}
			for _, rep := range reports {
				require.NotNil(t, rep.Failure)
				for _, text := range []string{rep.Failure.Message, rep.Failure.Code, rep.RawStatus} {
					assert.NotContains(t, html.UnescapeString(text), "0123456789", "%s %s", provider, name)
					if plain, err := url.QueryUnescape(text); err == nil {
						assert.NotContains(t, plain, "0123456789", "%s %s", provider, name)
					}
				}
			}
		}
		server.Close()
	}
}

// chain gives err and all that it wraps.
func chain(err error) []error {
	all := []error{err}
	switch u := err.(type) {
	case interface{ Unwrap() error }:
		if inner := u.Unwrap(); inner != nil {
			all = append(all, chain(inner)...)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range u.Unwrap() {
			all = append(all, chain(inner)...)
		}
	}
	return all
}

// What prints each error of a chain, or each type by any verb, prints no secret.
func TestNoErrorOfAChainHoldsTheSecret(t *testing.T) {
	c := kitServer(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, "http://other.example/?key="+kitKey, http.StatusFound)
		case "/nowhere":
			w.Header().Set("Location", "http://[::1/"+kitKey)
			w.WriteHeader(http.StatusFound)
		case "/length":
			w.Header().Set("Content-Length", "99")
			fmt.Fprint(w, `{"key":"`+kitKey)
		default:
			fmt.Fprint(w, `{"`+kitKey+`":"`+kitKey+`"}`)
		}
	})
	for _, path := range []string{"/away", "/nowhere", "/length", "/", "/x?key=" + kitKey} {
		for _, call := range []func() (Answer, error){
			func() (Answer, error) { return c.Get(t.Context(), path, new([]int)) },
			func() (Answer, error) { return c.Post(t.Context(), Request{URL: path}, new([]int)) },
		} {
			ans, err := call()
			require.Error(t, err, path)
			for _, e := range chain(err) {
				for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
					require.NotContains(t, fmt.Sprintf(verb, e), kitKey, "%s, %T", path, e)
				}
			}
			require.NotContains(t, fmt.Sprintf("%v %q", ans, ans.Body), kitKey)
		}
	}
	_, err := c.Get(t.Context(), "/away", nil)
	require.ErrorIs(t, err, ErrForeignHost)
	var way *url.Error
	require.ErrorAs(t, err, &way, "who asks for it gets it")

	f, err := NewFal(Config{Credentials: Secret(kitKey)})
	require.NoError(t, err)
	_, err = f.c.vault.get(t.Context())
	require.NoError(t, err)
	var log strings.Builder
	logger := slog.New(slog.NewJSONHandler(&log, nil))
	plain := slog.New(slog.NewTextHandler(&log, nil))
	for _, v := range []any{c, *c, f, *f, c.cfg, f.c.cfg} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%T", "%p"} {
			fmt.Fprintf(&log, verb, v)
		}
		logger.Info("x", "v", v)
		plain.Info("x", "v", v)
		raw, _ := json.Marshal(v)
		log.Write(raw)
	}
	require.NotContains(t, log.String(), kitKey)
	require.NotContains(t, log.String(), fmt.Sprintf("%x", kitKey))
}

func TestTheHeadersOfAnAnswerHoldNoSecret(t *testing.T) {
	c := kitServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header()["X-Echo"] = []string{"a", r.Header.Get("Authorization")}
		fmt.Fprint(w, `{}`)
	})
	ans, err := c.Get(t.Context(), "/", nil)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "Bearer …"}, ans.Header["X-Echo"])
}

// A body of backslashes costs no more than its length for each of them.
func TestARunOfBackslashesIsReadToABound(t *testing.T) {
	_, n := unescape([]byte(strings.Repeat(`\`, 1<<10)))
	require.Equal(t, maxBackslashes, n)
}

func FuzzNoDecodedTextHoldsTheSecret(f *testing.F) {
	for _, form := range echoes(echoKey) {
		f.Add(`{"a":"`+form+`"}`, echoKey)
	}
	f.Add(`"\\u0061bcdefgh"`, "abcdefgh")
	f.Fuzz(func(t *testing.T, body, key string) {
		if len(key) < minSecret || strings.TrimSpace(key) != key || strings.ContainsAny(key, "\\%&…\ufffd") || !validValue(key) || strings.ToValidUTF8(key, "") != key {
			return
		}
		hidden := newSecret(key).hide([]byte(body))
		var text Text
		if json.Unmarshal(hidden, &text) == nil && len(body) < maxText {
			require.NotContains(t, string(text), key)
		}
		require.NotContains(t, string(hidden), key)
	})
}
