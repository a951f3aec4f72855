package provider

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
)

type noticeParser = func([]byte, http.Header) (jobpoll.Notice, error)

func noticeParsers() map[string]noticeParser {
	all := map[string]noticeParser{"replicate": ReplicateNotice, "fal": FalNotice, "atlas": AtlasNotice}
	for name, f := range families {
		if f.notice != nil {
			all[name] = f.notice
		}
	}
	return all
}

func TestEveryDeliveryIsReadAsItsFixtureSays(t *testing.T) {
	for name, parse := range noticeParsers() {
		files, err := filepath.Glob(filepath.Join("..", "testdata", "providers", name, "webhook-*.json"))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			t.Run(name+"/"+strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
				raw, err := os.ReadFile(file)
				require.NoError(t, err)
				var f struct {
					About, Text, Error string
					Body, Notice       json.RawMessage
				}
				fixtureJSON(t, file, string(raw), &f)
				require.NotEmpty(t, f.About)
				body := []byte(f.Body)
				if f.Body == nil {
					body = []byte(f.Text)
				}
				n, err := parse(body, http.Header{})
				if f.Error != "" {
					require.ErrorContains(t, err, f.Error)
					require.True(t, strings.HasPrefix(err.Error(), "jobpoll: "), err)
					require.Equal(t, jobpoll.Notice{}, n)
					return
				}
				require.NoError(t, err)
				requireSameJSON(t, f.Notice, n)
			})
		}
	}
}

// What a look and a delivery are told in the same words gives the same Report.
func TestADeliveryIsReadByTheTablesOfTheLook(t *testing.T) {
	wrap := map[string]func(string) string{
		"replicate": func(body string) string { return body },
		"atlas": func(body string) string {
			var v struct{ Data json.RawMessage }
			if json.Unmarshal([]byte(body), &v) != nil || v.Data == nil {
				return ""
			}
			return `{"session_id":"s","payload":` + string(v.Data) + `}`
		},
	}
	for name, wrap := range wrap {
		compared := 0
		for _, file := range fixtureFiles(t, name) {
			f := readFixture(t, file, "https://provider.example")
			if f.call != "check" || f.report == nil || len(f.exchanges) != 1 || f.exchanges[0].header.Get("Retry-After") != "" {
				continue
			}
			body := wrap(f.exchanges[0].body)
			if body == "" {
				continue
			}
			n, err := noticeParsers()[name]([]byte(body), nil)
			require.NoError(t, err, file)
			requireSameJSON(t, f.report, n.Report)
			compared++
		}
		require.Greater(t, compared, 5, name)
	}
}

// B64(b): a webhook that could not carry its payload says ERROR, though the job
// is fine.
func TestADeliveryThatCouldNotCarryItsPayloadIsAHint(t *testing.T) {
	n, err := FalNotice([]byte(`{"request_id":"r1","status":"ERROR","payload":null,"payload_error":"use the queue endpoint"}`), nil)
	require.NoError(t, err)
	require.Equal(t, jobpoll.TrustHint, n.Trust)
	require.Equal(t, jobpoll.StateUnknown, n.Report.State)
	require.Equal(t, "r1", n.Key.ID)
}

func TestANoticeKeepsNothingOfTheBody(t *testing.T) {
	body := []byte(`{"id":"rp-01","status":"succeeded","output":"https://files.example.test/a.mp4"}`)
	n, err := ReplicateNotice(body, nil)
	require.NoError(t, err)
	for i := range body {
		body[i] = '!'
	}
	require.Equal(t, `"https://files.example.test/a.mp4"`, string(n.Report.Output))
	require.Equal(t, "rp-01", n.Key.ID)
}

func FuzzNotices(f *testing.F) {
	for name := range noticeParsers() {
		files, err := filepath.Glob(filepath.Join("..", "testdata", "providers", name, "webhook-*.json"))
		require.NoError(f, err)
		for _, file := range files {
			raw, err := os.ReadFile(file)
			require.NoError(f, err)
			var v struct{ Body json.RawMessage }
			require.NoError(f, json.Unmarshal(raw, &v))
			f.Add([]byte(v.Body))
		}
	}
	f.Add([]byte(strings.Repeat("[", 100_000)))
	f.Add([]byte(`{"payload":` + strings.Repeat(`{"a":`, 5000)))
	f.Fuzz(func(t *testing.T, body []byte) {
		for name, parse := range noticeParsers() {
			n, err := parse(body, nil)
			if err != nil {
				assert.Equal(t, jobpoll.Notice{}, n, name)
				continue
			}
			if n.Trust == jobpoll.TrustAuthoritative {
				assert.NotEqual(t, jobpoll.StateUnknown, n.Report.State, name)
			}
			if n.Report.State == jobpoll.StateSucceeded {
				assert.True(t, HasOutput(n.Report.Output), name)
			}
			assert.Empty(t, n.Key.Route, name)
		}
	})
}
