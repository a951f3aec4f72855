package gosdkcheck

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll/polltest/loopback"
)

// azureVideo is what an operation gives.
type azureVideo struct {
	URL string `json:"url"`
}

// azureMonitored is an operation that is told as a whole.
type azureMonitored struct {
	Status string     `json:"status"`
	Result azureVideo `json:"result"`
}

// azureAsync is a service that names the monitor in the header of those for management.
type azureAsync struct{ loopback.Wire }

func (w azureAsync) Write(r loopback.Reply) loopback.Answer {
	a := w.Wire.Write(r)
	if at := a.Header.Get("Operation-Location"); at != "" {
		a.Header = http.Header{"Azure-Asyncoperation": {at}}
	}
	return a
}

// azureLocation is a service that has no monitor: what it gives is at a place where
// nothing is until it is done.
type azureLocation struct{ loopback.Wire }

func (w azureLocation) Write(r loopback.Reply) loopback.Answer {
	a := w.Wire.Write(r)
	switch at := a.Header.Get("Operation-Location"); {
	case at != "":
		return loopback.Answer{Status: http.StatusAccepted, Header: http.Header{"Location": {at}}}
	case !r.Entry.State.Terminal():
		return loopback.Answer{Status: http.StatusAccepted}
	}
	return loopback.Answer{Status: http.StatusOK, Body: r.Output(map[string]string{"url": "https://files.example.test/" + r.View.ID + ".mp4"})}
}

func azurePipeline(credential string) runtime.Pipeline {
	key := runtime.NewKeyCredentialPolicy(azcore.NewKeyCredential(credential), "api-key", &runtime.KeyCredentialPolicyOptions{InsecureAllowCredentialWithHTTP: true})
	return runtime.NewPipeline("gosdkcheck", "v0.0.0", runtime.PipelineOptions{PerRetry: []policy.Policy{key}}, &policy.ClientOptions{
		Retry: policy.RetryOptions{RetryDelay: time.Millisecond, MaxRetryDelay: 50 * time.Millisecond},
	})
}

// azureStart is what a client that is made of the service's description does to begin.
func azureStart[T any](t *testing.T, p runtime.Pipeline, url string, options *runtime.NewPollerOptions[T]) (*runtime.Poller[T], error) {
	req, err := runtime.NewRequest(limit(t), http.MethodPost, url)
	require.NoError(t, err)
	body := streaming.NopCloser(strings.NewReader(`{"prompt":"a cat"}`))
	require.NoError(t, req.SetBody(body, "application/json"))
	answer, err := p.Do(req)
	require.NoError(t, err)
	return runtime.NewPoller(answer, p, options)
}

const azurePath = "/videos:generate?api-version=2026-01-01"

var (
	azureOptions = &runtime.NewPollerOptions[azureVideo]{OperationLocationResultPath: "result"}
	azurePace    = &runtime.PollUntilDoneOptions{Frequency: time.Millisecond}
)

func azureUntilDone(t *testing.T, script string) (*loopback.Server, azureVideo, error) {
	server := aim(t, loopback.AzureLRO(), script)
	poller, err := azureStart(t, azurePipeline(key), server.URL()+azurePath, azureOptions)
	require.NoError(t, err)
	got, err := poller.PollUntilDone(limit(t), azurePace)
	return server, got, err
}

func TestPollUntilDoneOfAzureGivesTheResult(t *testing.T) {
	server, got, err := azureUntilDone(t, succeeds)
	require.NoError(t, err)
	assert.Regexp(t, `^https://.*\.mp4$`, got.URL)
	assert.Greater(t, server.Stats().Statuses, 2)
}

func TestPollUntilDoneOfAzureHeedsAWait(t *testing.T) {
	begun := time.Now()
	_, got, err := azureUntilDone(t, `queued retry-after 20ms; at 3s succeeded`)
	require.NoError(t, err)
	assert.NotEmpty(t, got.URL)
	assert.GreaterOrEqual(t, time.Since(begun), 20*time.Millisecond)
}

func TestAnOperationOfAzureThatFailedSaysWhy(t *testing.T) {
	for script, code := range map[string]string{
		fails: "InternalServerError", rejected: "InvalidRequest", filtered: "ContentFilter", expires: "OperationTimedOut",
		canceled: "", // says no more
	} {
		_, _, err := azureUntilDone(t, script)
		var e *azcore.ResponseError
		require.ErrorAs(t, err, &e, script)
		assert.Equal(t, http.StatusOK, e.StatusCode)
		assert.Equal(t, code, e.ErrorCode, script)
	}
}

func TestALookThatIsRefusedIsRepeatedByTheClientOfAzure(t *testing.T) {
	for _, script := range []string{busy, gateway} {
		server, got, err := azureUntilDone(t, script)
		require.NoError(t, err)
		assert.NotEmpty(t, got.URL)
		assert.Equal(t, 1, server.Stats().Faults)
	}
}

func TestAnOperationOfAzureIsTakenUpByAToken(t *testing.T) {
	server := aim(t, loopback.AzureLRO(), succeeds)
	pipeline := azurePipeline(key)
	begun, err := azureStart(t, pipeline, server.URL()+azurePath, azureOptions)
	require.NoError(t, err)
	_, err = begun.Poll(limit(t))
	require.NoError(t, err)
	assert.False(t, begun.Done())
	token, err := begun.ResumeToken()
	require.NoError(t, err)

	taken, err := runtime.NewPollerFromResumeToken(token, pipeline, &runtime.NewPollerFromResumeTokenOptions[azureVideo]{})
	require.NoError(t, err)
	got, err := taken.PollUntilDone(limit(t), azurePace)
	require.NoError(t, err)
	assert.NotEmpty(t, got.URL)
}

func TestAMonitorOfAzureMayStandInAnotherHeader(t *testing.T) {
	server := aim(t, azureAsync{loopback.AzureLRO()}, succeeds)
	options := &runtime.NewPollerOptions[azureMonitored]{FinalStateVia: runtime.FinalStateViaAzureAsyncOp}
	poller, err := azureStart(t, azurePipeline(key), server.URL()+azurePath, options)
	require.NoError(t, err)
	got, err := poller.PollUntilDone(limit(t), azurePace)
	require.NoError(t, err)
	assert.Equal(t, "Succeeded", got.Status)
	assert.NotEmpty(t, got.Result.URL)
	assert.Greater(t, server.Stats().Statuses, 2)
}

func TestAnOperationOfAzureMayHaveALocationAlone(t *testing.T) {
	server := aim(t, azureLocation{loopback.AzureLRO()}, succeeds)
	poller, err := azureStart[azureVideo](t, azurePipeline(key), server.URL()+azurePath, nil)
	require.NoError(t, err)
	got, err := poller.PollUntilDone(limit(t), azurePace)
	require.NoError(t, err)
	assert.NotEmpty(t, got.URL)
	assert.Greater(t, server.Stats().Statuses, 2)
}

func TestErrorsOfAzureAreToldByStatus(t *testing.T) {
	server := aim(t, loopback.AzureLRO(), goesOn)
	for _, c := range []struct {
		credential, path string
		status           int
		code             string
	}{
		{wrong, azurePath, http.StatusUnauthorized, "Unauthorized"},
		{key, "/videos:generate", http.StatusBadRequest, "BadRequest"}, // without a version
	} {
		_, err := azureStart(t, azurePipeline(c.credential), server.URL()+c.path, azureOptions)
		azureTold(t, err, c.status, c.code)
	}
	assert.Zero(t, server.Stats().Accepted)

	pipeline := azurePipeline(key)
	req, err := runtime.NewRequest(limit(t), http.MethodGet, server.URL()+"/operations/none?api-version=1")
	require.NoError(t, err)
	answer, err := pipeline.Do(req)
	require.NoError(t, err)
	azureTold(t, runtime.NewResponseError(answer), http.StatusNotFound, "NotFound")
}

func azureTold(t *testing.T, err error, status int, code string) {
	t.Helper()
	var e *azcore.ResponseError
	require.ErrorAs(t, err, &e)
	assert.Equal(t, status, e.StatusCode)
	assert.Equal(t, code, e.ErrorCode)
}
