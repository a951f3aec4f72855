// Sdkcheck lets published JavaScript SDKs of providers work with the servers of
// package polltest/loopback, the vendors' own where there are such: what they take
// for the provider is shaped as the provider is. And it lets the vendors' libraries for
// webhooks sign what package webhook verifies, and verify what polltest/sign
// signs.
//
//	sdkcheck DIR
//
// DIR has the files beside this one and the packages of package-lock.json
// installed, by npm ci. Package node:test tells what failed.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jobpoll/jobpoll/polltest/loopback"
)

// limit is for all of the checks, which take some 20 seconds.
const limit = 60 * time.Second

// atOnce is how many files of tests run at the same time: each waits more than it
// works.
const atOnce = 4

const credential = "key-of-sdkcheck"

// authorize are the checks of those that make a token of the credential, which is the
// secret key then. The access key is that of the file.
var authorize = map[string]func(string, time.Time) bool{
	"kling.test.mjs": loopback.KlingKeys("access-key-of-sdkcheck", credential),
}

// scripts are chosen by the prompt of a submission.
var scripts = map[string]string{
	"succeeds": `queued pos 2; at 1s running 20%; at 2s succeeded`,
	"fails":    `queued; at 300ms failed fault "out of memory"`,
	"rejected": `queued; at 300ms failed rejected "no face found"`,
	"goes on":  `queued; at 100ms running`,
	"busy":     `queued; at 100ms succeeded; at 100ms 429 "busy" retry-after 1s once`,
	"gateway":  `queued; at 100ms succeeded; at 100ms 503 once`,
	"filtered": `queued; at 300ms failed filtered "unsafe"`,
	"canceled": `queued; at 300ms canceled`,
	"expires":  `queued; at 300ms expired`,
	// for clients whose submission is held open
	"late busy":    `running; at 1200ms succeeded; at 1200ms 429 "busy" retry-after 1s once`,
	"late gateway": `running; at 1200ms succeeded; at 1200ms 503 once`,
}

func script(_ int, body json.RawMessage) string {
	var sent struct {
		Prompt string                  `json:"prompt"`
		Input  struct{ Prompt string } `json:"input"`
		Text   string                  `json:"promptText"` // Runway's
		// Google's
		Instances []struct{ Prompt string } `json:"instances"`
		Content   []struct{ Text string }   `json:"content"` // Ark's
		Image     struct{ Name string }     // Stability's: the file
	}
	_ = json.Unmarshal(body, &sent) // the server has checked it
	prompt := sent.Prompt + sent.Input.Prompt + sent.Text + strings.TrimSuffix(sent.Image.Name, ".png")
	for _, i := range sent.Instances {
		prompt += i.Prompt
	}
	for _, c := range sent.Content {
		prompt += c.Text
	}
	return scripts[prompt]
}

// fault breaks the looks that ask for it by a header, where no script does: a
// result that is asked for is none of its looks.
func fault(_ int, r *http.Request) loopback.Fault {
	status, err := strconv.Atoi(r.Header.Get("X-Fault"))
	if err != nil || r.Method != http.MethodGet {
		return loopback.Fault{}
	}
	return loopback.Fault{Status: status}
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: sdkcheck DIR")
		os.Exit(2)
	}
	if err := check(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "sdkcheck:", err)
		os.Exit(1)
	}
}

func check(dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	sdks := []sdk{
		{"replicate.test.mjs", loopback.Replicate(), true},
		{"fal.test.mjs", loopback.Fal(), true},
		{"runway.test.mjs", loopback.Runway(), true},
		{"luma.test.mjs", loopback.Luma(), true},
		{"veo.test.mjs", loopback.Veo(), false},
		{"wavespeed.test.mjs", loopback.WaveSpeed(), false},
		{"xai.test.mjs", loopback.XAI(), false},
		{"azurelro.test.mjs", loopback.AzureLRO(), false},
		{"openai.test.mjs", loopback.OpenAI(), true},
		{"bytedance.test.mjs", loopback.Ark(), false},
		{"alibaba.test.mjs", loopback.DashScope(), false},
		{"vertex.test.mjs", loopback.VertexVeo(), false},
		{"aifal.test.mjs", loopback.Fal(), false},
		{"aireplicate.test.mjs", loopback.Replicate(), false},
		{"minimax.test.mjs", loopback.MiniMax(), false},
		{"stability.test.mjs", loopback.Stability(), false},
		{"kling.test.mjs", loopback.Kling(), false},
	}
	errs := make([]error, len(sdks)+1)
	var all sync.WaitGroup
	places := make(chan struct{}, atOnce)
	run := func(i int, f func() error) {
		places <- struct{}{}
		all.Go(func() {
			errs[i] = f()
			<-places
		})
	}
	for i, s := range sdks {
		run(i, func() error { return s.check(ctx, dir) })
	}
	run(len(sdks), func() error { return checkWebhooks(ctx, dir) })
	all.Wait()
	return errors.Join(errs...)
}

// sdk is one of them, and the server that it is aimed at.
type sdk struct {
	file    string
	wire    loopback.Wire
	cancels bool // it has a call to cancel or delete
}

// check aims an SDK at a server of its own.
func (k sdk) check(ctx context.Context, dir string) error {
	server := loopback.Start(loopback.Config{Wire: k.wire, Credential: credential, Authorize: authorize[k.file], Script: script, Fault: fault, PageSize: 3})
	defer server.Close()
	err := runTests(ctx, dir, k.file, "SERVER_URL="+server.URL(), "SERVER_CREDENTIAL="+credential)
	return errors.Join(err, k.knew(server.Stats()))
}

// runTests runs a file of tests, and shows what it says when it has ended.
func runTests(ctx context.Context, dir, file string, env ...string) error {
	cmd := exec.CommandContext(ctx, "node", "--test", "--test-reporter=spec", filepath.Join(dir, file))
	cmd.Env = append(os.Environ(), "NO_PROXY=*", "no_proxy=*") // some SDKs would take one to loopback
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	_, _ = os.Stdout.Write(out)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// knew is an error where the SDK asked for what the server has not, or asked
// for less than the checks need.
func (k sdk) knew(s loopback.Stats) error {
	file := k.file
	fmt.Printf("%s: %+v\n", file, s)
	switch {
	case s.Unknown > 0:
		return fmt.Errorf("%s: %d requests were for paths that the server has not", file, s.Unknown)
	case s.Accepted == 0, max(s.Statuses, s.Results) <= s.Accepted, k.cancels && s.Cancels == 0, s.Unauthorized == 0, s.Faults == 0:
		return fmt.Errorf("%s: not all was asked for: %+v", file, s)
	}
	return nil
}
