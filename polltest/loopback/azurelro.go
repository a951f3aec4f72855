package loopback

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/jobpoll/jobpoll"
)

// AzureLRO is the wire of a service by Azure's convention of long-running
// operations: a POST to any path is answered with 202 and the URL of the operation in
// Operation-Location, for requests that name an api-version in the query. Keys are
// Bearer tokens, or in the header api-key. There is no call to cancel.
//
// Sources: https://github.com/microsoft/api-guidelines, and npm @azure/core-lro
// 3.3.1 and Go azcore 1.24.0, which work with it.
func AzureLRO() Wire { return azureLRO{} }

type azureLRO struct{}

var azureWords = map[jobpoll.State]string{
	jobpoll.StateQueued: "NotStarted", jobpoll.StateRunning: "Running", jobpoll.StateSucceeded: "Succeeded",
	jobpoll.StateFailed: "Failed", jobpoll.StateCanceled: "Canceled", jobpoll.StateExpired: "Failed",
}

// azureFailures are the codes of failures; of others it is InternalServerError.
var azureFailures = map[jobpoll.FailureKind]string{
	jobpoll.FailureFiltered: "ContentFilter", jobpoll.FailureRejected: "InvalidRequest", jobpoll.FailureQuota: "QuotaExceeded",
}

func (azureLRO) ID(n int) string { return fmt.Sprintf("2f6a8e10-0c55-4b7d-8f3e-%012x", n) }

// Read takes the version as Call.Model.
func (azureLRO) Read(r *http.Request, _ json.RawMessage) Call {
	call := Call{Credential: bearer(r, "Bearer"), Model: r.URL.Query().Get("api-version")}
	if key := r.Header.Get("Api-Key"); key != "" {
		call.Credential = key
	}
	call.Bad = call.Model == ""
	id, isOperation := below(r.URL.Path, "/operations/")
	switch {
	case isOperation && r.Method == http.MethodGet:
		call.Op, call.ID = OpStatus, id
	case !strings.HasPrefix(r.URL.Path, "/operations/") && r.URL.Path != "/" && r.Method == http.MethodPost:
		call.Op = OpSubmit
	}
	return call
}

type azureOperation struct {
	ID     string      `json:"id"`
	Status any         `json:"status"`
	Error  *azureError `json:"error,omitempty"`
	Result any         `json:"result,omitempty"`
}

type azureError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (azureLRO) Write(r Reply) Answer {
	o := azureOperation{ID: r.View.ID, Status: orNil(r.Word(azureWords)), Result: r.Output(map[string]string{"url": r.file()})}
	if kind, why, ok := r.failed(); ok {
		o.Error = &azureError{Code: "InternalServerError", Message: why}
		if code, ok := azureFailures[kind]; ok {
			o.Error.Code = code
		}
	}
	if r.Entry.State == jobpoll.StateExpired {
		o.Error = &azureError{Code: "OperationTimedOut", Message: "the operation took too long"}
	}
	if r.Op != OpSubmit {
		return Answer{Status: http.StatusOK, Body: o}
	}
	at := r.View.Base + "/operations/" + r.View.ID + "?api-version=" + url.QueryEscape(r.Call.Model)
	return Answer{Status: http.StatusAccepted, Header: http.Header{"Operation-Location": {at}}, Body: o}
}

func (azureLRO) Error(p Problem) Answer {
	status, text := p.usual()
	code := strings.ReplaceAll(http.StatusText(status), " ", "")
	return Answer{Status: status, Header: http.Header{"X-Ms-Error-Code": {code}}, Body: map[string]any{"error": azureError{Code: code, Message: text}}}
}
