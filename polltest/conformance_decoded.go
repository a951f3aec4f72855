package polltest

import (
	"bytes"
	"encoding/json"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// decoded are the texts of a request as a provider reads them: path and query
// without their escapes, and those of a body of JSON or of a form.
func decoded(r *http.Request, body []byte) []string {
	texts := append([]string{r.URL.Path}, inForm(r.URL.Query())...)
	kind, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch kind {
	case "application/x-www-form-urlencoded":
		values, _ := url.ParseQuery(string(body)) // what can be read of it
		return append(texts, inForm(values)...)
	case "multipart/form-data":
		form, err := multipart.NewReader(bytes.NewReader(body), params["boundary"]).ReadForm(int64(len(body)))
		if err != nil {
			return texts
		}
		defer func() { _ = form.RemoveAll() }()
		return append(texts, inForm(form.Value)...)
	}
	var v any
	switch err := json.Unmarshal(body, &v); {
	case err == nil:
		return inJSON(texts, v)
	case !strings.HasSuffix(kind, "json"):
		return append(texts, string(body))
	}
	return texts
}

// inForm are the names and values of a form.
func inForm(values url.Values) (texts []string) {
	for name, all := range values {
		texts = append(append(texts, name), all...)
	}
	return texts
}

// inJSON adds the strings of a value, and the names in it.
func inJSON(texts []string, v any) []string {
	switch v := v.(type) {
	case string:
		return append(texts, v)
	case []any:
		for _, item := range v {
			texts = inJSON(texts, item)
		}
	case map[string]any:
		for name, item := range v {
			texts = inJSON(append(texts, name), item)
		}
	}
	return texts
}

// says reports whether the text, all of it, is what the provider reads somewhere
// in path, query or body.
func (q *asked) says(text string) bool {
	return slices.ContainsFunc(q.decoded, func(t string) bool { return strings.Contains(t, text) })
}
