package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
)

// What an adapter makes of a body, beside a bare json.Unmarshal of the same bytes
// into the same struct: both are in one run, so that the ratio counts. It should be
// 1.3 at most, of each adapter.

var benchBodies = map[string]string{
	"fal":       `{"request_id":"req-a1","status":"IN_QUEUE","queue_position":3,"response_url":"https://queue.example.test/own/app/requests/req-a1","status_url":"https://queue.example.test/own/app/requests/req-a1/status","cancel_url":"https://queue.example.test/own/app/requests/req-a1/cancel"}`,
	"replicate": `{"id":"rp-01","status":"succeeded","output":"https://files.example.test/a.mp4","error":null,"metrics":{"predict_time":38.2,"total_time":40.9},"started_at":"2026-01-02T03:04:08.000Z","completed_at":"2026-01-02T03:04:46.000Z","urls":{"get":"https://api.example.test/v1/predictions/rp-01"}}`,
	"atlas":     `{"code":200,"data":{"id":"at-01","status":"completed","outputs":["https://cdn.example.test/a.mp4"],"has_nsfw_contents":[false],"created_at":"2026-01-02T03:04:05Z"}}`,

	"fal-result":   `{"video":{"url":"https://files.example.test/a.mp4","content_type":"video/mp4","file_name":"a.mp4","file_size":1234567},"seed":42}`,
	"minimax-file": `{"file":{"file_id":90001,"bytes":1234567,"created_at":1767323045,"filename":"a.mp4","purpose":"video_generation","download_url":"https://files.example.test/a.mp4?Expires=1&Signature=x"},"base_resp":{"status_code":0,"status_msg":"success"}}`,
}

// decoders are the steps from bytes to Report, and to the bare struct.
var decoders = map[string]struct {
	report func(body []byte, ans *Answer) (jobpoll.Report, error)
	bare   func(body []byte) error
}{
	"fal": {
		func(body []byte, ans *Answer) (jobpoll.Report, error) {
			var v falStatus
			if err := decodeInto(ans.Header, body, &v); err != nil {
				return jobpoll.Report{}, err
			}
			return v.report(ans)
		},
		func(body []byte) error { var v falStatus; return json.Unmarshal(body, &v) },
	},
	"replicate": {
		func(body []byte, ans *Answer) (jobpoll.Report, error) {
			var v prediction
			if err := decodeInto(ans.Header, body, &v); err != nil {
				return jobpoll.Report{}, err
			}
			return v.report(ans)
		},
		func(body []byte) error { var v prediction; return json.Unmarshal(body, &v) },
	},
	"atlas": {
		func(body []byte, ans *Answer) (jobpoll.Report, error) {
			var v atlasAnswer
			if err := decodeInto(ans.Header, body, &v); err != nil {
				return jobpoll.Report{}, err
			}
			if err := v.refusal(ans); err != nil {
				return jobpoll.Report{}, err
			}
			return v.report(ans)
		},
		func(body []byte) error { var v atlasAnswer; return json.Unmarshal(body, &v) },
	},
	"fal-result": {
		func(body []byte, ans *Answer) (jobpoll.Report, error) {
			var out json.RawMessage
			if err := decodeInto(ans.Header, body, &out); err != nil {
				return jobpoll.Report{}, err
			}
			return falResult(ans, out, jobpoll.Report{RawStatus: "COMPLETED"}), nil
		},
		func(body []byte) error { var out json.RawMessage; return json.Unmarshal(body, &out) },
	},
	"minimax-file": {
		func(body []byte, ans *Answer) (jobpoll.Report, error) {
			v := &miniMaxFile{}
			return told(ans, decodeInto(ans.Header, body, v), v)
		},
		func(body []byte) error { return json.Unmarshal(body, &miniMaxFile{}) },
	},
}

func BenchmarkDecode(b *testing.B) {
	header := http.Header{"Content-Type": {"application/json; charset=utf-8"}}
	for _, name := range slices.Sorted(maps.Keys(decoders)) {
		body, d := []byte(benchBodies[name]), decoders[name]
		b.Run(name+"/report", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ans := Answer{Status: 200, Header: header, Body: body}
				if _, err := d.report(body, &ans); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/bare", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := d.bare(body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A report costs few allocations more than the bare struct does.
func TestAReportAllocatesLittle(t *testing.T) {
	header := http.Header{"Content-Type": {"application/json"}}
	for _, name := range slices.Sorted(maps.Keys(decoders)) {
		body, d := []byte(benchBodies[name]), decoders[name]
		bare := testing.AllocsPerRun(100, func() { _ = d.bare(body) })
		full := testing.AllocsPerRun(100, func() {
			ans := Answer{Status: 200, Header: header, Body: body}
			if _, err := d.report(body, &ans); err != nil {
				panic(err)
			}
		})
		require.LessOrEqual(t, full, bare+2, name)
	}
	for _, name := range familyNames() {
		f := families[name]
		bare := testing.AllocsPerRun(100, func() { _ = json.Unmarshal([]byte(f.body), f.bare()) })
		full := testing.AllocsPerRun(100, func() {
			ans, v := Answer{Status: 200, Header: header, Body: []byte(f.body)}, f.reply()
			if _, err := told(&ans, decodeInto(header, ans.Body, v), v); err != nil {
				panic(err)
			}
		})
		require.LessOrEqual(t, full, bare+2, name)
	}
}

// BenchmarkCheck is a whole look, but for the network.
func BenchmarkCheck(b *testing.B) {
	for _, name := range adapterNames {
		b.Run(name, func(b *testing.B) {
			a := cannedAdapter(b, name, &canned{200, http.Header{"Content-Type": {"application/json"}}, []byte(benchBodies[name])})
			job := jobpoll.Job{ID: "x", Ref: refFor(name)}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := a.Check(context.Background(), job); err != nil {
					b.Fatal(fmt.Sprint(err))
				}
			}
		})
	}
}
