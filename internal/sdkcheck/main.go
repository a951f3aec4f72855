// Sdkcheck lets the official JavaScript SDKs of providers work with the servers
// of package polltest/loopback: what the vendors' own clients take for the
// provider is shaped as the provider is. And it lets the vendors' libraries for
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
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/jobpoll/jobpoll/polltest/loopback"
)

// limit is for all of the checks, which take some seconds.
const limit = 50 * time.Second

const credential = "key-of-sdkcheck"

// scripts are chosen by the prompt of a submission.
var scripts = map[string]string{
	"succeeds": `queued pos 2; at 1s running 20%; at 2s succeeded`,
	"fails":    `queued; at 300ms failed fault "out of memory"`,
	"rejected": `queued; at 300ms failed rejected "no face found"`,
	"goes on":  `queued; at 100ms running`,
	"busy":     `queued; at 100ms succeeded; at 100ms 429 "busy" retry-after 1s once`,
	"gateway":  `queued; at 100ms succeeded; at 100ms 503 once`,
}

func script(_ int, body json.RawMessage) string {
	var sent struct {
		Prompt string                  `json:"prompt"`
		Input  struct{ Prompt string } `json:"input"`
	}
	_ = json.Unmarshal(body, &sent) // the server has checked it
	return scripts[sent.Prompt+sent.Input.Prompt]
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
	sdks := []struct {
		file string
		wire loopback.Wire
	}{
		{"replicate.test.mjs", loopback.Replicate()},
		{"fal.test.mjs", loopback.Fal()},
	}
	var errs []error
	for _, sdk := range sdks {
		server := loopback.Start(loopback.Config{Wire: sdk.wire, Credential: credential, Script: script, PageSize: 3})
		err := runTests(ctx, dir, sdk.file, "SERVER_URL="+server.URL(), "SERVER_CREDENTIAL="+credential)
		errs = append(errs, err, knew(sdk.file, server.Stats()))
		server.Close()
	}
	return errors.Join(append(errs, checkWebhooks(ctx, dir))...)
}

// runTests runs a file of tests.
func runTests(ctx context.Context, dir, file string, env ...string) error {
	cmd := exec.CommandContext(ctx, "node", "--test", "--test-reporter=spec", filepath.Join(dir, file))
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// knew is an error where the SDK asked for what the server has not, or asked
// for less than the checks need.
func knew(file string, s loopback.Stats) error {
	fmt.Printf("%s: %+v\n", file, s)
	switch {
	case s.Unknown > 0:
		return fmt.Errorf("%s: %d requests were for paths that the server has not", file, s.Unknown)
	case s.Accepted == 0, s.Statuses <= s.Accepted, s.Cancels == 0, s.Unauthorized == 0, s.Faults == 0:
		return fmt.Errorf("%s: not all was asked for: %+v", file, s)
	}
	return nil
}
