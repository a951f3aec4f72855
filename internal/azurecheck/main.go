// Azurecheck lets the adapter for Azure's long-running operations work with a server
// that others wrote: Microsoft's autorest.testserver, by which the generators of
// Azure's own clients are tried.
//
//	azurecheck DIR
//
// DIR has the packages of package-lock.json installed, by npm ci.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/provider"
)

const (
	limit    = 40 * time.Second // for all of it, which takes some seconds
	maxLooks = 12               // at one operation; the server lets none wait for more than three
	product  = `{"location":"West US","properties":{}}`
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: azurecheck DIR")
		os.Exit(2)
	}
	if err := check(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "azurecheck:", err)
		os.Exit(1)
	}
}

func check(dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	base, stop, err := serve(ctx, dir)
	if err != nil {
		return err
	}
	defer stop()
	var errs []error
	for _, r := range routes {
		got := r.follow(ctx, base)
		if got != r.want {
			errs = append(errs, fmt.Errorf("%s %s: %s, want %s", r.method, r.path, got, r.want))
		}
	}
	fmt.Printf("%d of %d routes ended as they should\n", len(routes)-len(errs), len(routes))
	return errors.Join(errs...)
}

// serve starts the server on a free port, and waits until it answers.
func serve(ctx context.Context, dir string) (base string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	address := l.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	if err := l.Close(); err != nil {
		return "", nil, err
	}
	var said bytes.Buffer
	program := filepath.Join(dir, "node_modules", "@microsoft.azure", "autorest.testserver", "dist", "cli", "cli.js")
	cmd := exec.CommandContext(ctx, "node", program, "--port", port, "--coverageDirectory", filepath.Join(dir, "coverage"))
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // it is killed in the end
	}()
	stop = func() {
		_ = cmd.Process.Kill()
		<-ended
	}
	for {
		c, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			return "http://" + address, stop, c.Close()
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ended:
			return "", nil, fmt.Errorf("the server ended: %s", said.Bytes())
		case <-ctx.Done():
			stop()
			return "", nil, fmt.Errorf("the server does not listen: %s", said.Bytes())
		}
	}
}

// follow starts an operation and looks until it has an end, in words.
func (r route) follow(ctx context.Context, base string) string {
	jar, err := cookiejar.New(nil) // the server keeps its state with the client
	if err != nil {
		return err.Error()
	}
	client := &http.Client{Jar: jar, Timeout: 5 * time.Second}
	azure, err := provider.NewAzureLRO(provider.Config{BaseURL: base, HTTP: client, Credentials: provider.Secret("key-of-azurecheck")})
	if err != nil {
		return err.Error()
	}
	job, err := r.start(ctx, azure, client, base)
	if word(err) == jobpoll.ErrorTransient.String() {
		job, err = r.start(ctx, azure, client, base) // nothing here is paid for
	}
	if err != nil {
		return "start: " + word(err)
	}
	job.Route = "azure"
	var last error
	for range maxLooks {
		rep, err := azure.Check(ctx, job)
		if rep.Ref != "" {
			job.Ref = rep.Ref
		}
		if err == nil && rep.State == jobpoll.StateSucceeded && rep.Output == nil {
			done := rep
			if rep, err = azure.Fetch(ctx, job, done); word(err) == jobpoll.ErrorTransient.String() {
				rep, err = azure.Fetch(ctx, job, done) // as the engine does
			}
		}
		switch last = err; {
		case err != nil && word(err) != jobpoll.ErrorTransient.String():
			return word(err)
		case err == nil && rep.State.Terminal():
			return end(rep)
		}
	}
	if last != nil {
		return word(last)
	}
	return "goes on"
}

// start begins an operation: with the adapter if it is a POST, else as a program
// does that has a client of its own.
func (r route) start(ctx context.Context, azure *provider.AzureLRO, client *http.Client, base string) (jobpoll.Job, error) {
	if r.method == http.MethodPost {
		job, _, err := azure.Submit(ctx, provider.Order{Path: "/lro" + r.path, Input: json.RawMessage(product)})
		return job, err
	}
	at, body := base+"/lro"+r.path, product
	if r.method == http.MethodDelete {
		body = ""
	}
	req, err := http.NewRequestWithContext(ctx, r.method, at, strings.NewReader(body))
	if err != nil {
		return jobpoll.Job{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return jobpoll.Job{}, err
	}
	defer resp.Body.Close()
	sent, err := io.ReadAll(resp.Body)
	if err != nil {
		return jobpoll.Job{}, err
	}
	if resp.StatusCode >= http.StatusBadRequest {
		_, err := jobpoll.FromResponse(resp, jobpoll.SystemClock().Now())
		return jobpoll.Job{}, err
	}
	if r.method == http.MethodDelete {
		at = ""
	}
	ref := provider.AzureRef(resp.Header, at)
	if done(resp.StatusCode, ref, sent) {
		return jobpoll.Job{}, errDone
	}
	return jobpoll.Job{ID: "100", Ref: ref}, nil
}

var errDone = errors.New("done at once")

// done reports whether the answer to a start is already that to the end: no
// operation is left to look at.
func done(status int, ref string, body []byte) bool {
	var resource struct {
		Properties struct {
			State string `json:"provisioningState"`
		} `json:"properties"`
	}
	if status == http.StatusAccepted || json.Unmarshal(body, &resource) != nil {
		return status == http.StatusNoContent
	}
	state, monitored := resource.Properties.State, !strings.HasPrefix(ref, "resource:")
	return state == "Succeeded" || state == "" && !monitored
}

// word is the kind of an error.
func word(err error) string {
	if err == nil {
		return ""
	}
	var ce *jobpoll.CheckError
	if errors.As(err, &ce) {
		return ce.Kind.String()
	}
	return err.Error()
}

// end is how an operation ended.
func end(r jobpoll.Report) string {
	if r.State == jobpoll.StateFailed && r.Failure != nil && r.Failure.Kind == jobpoll.FailureNoOutput {
		return "nothing"
	}
	return r.State.String()
}
