package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"github.com/jobpoll/jobpoll"
)

// Form is a body of multipart/form-data, which takes files as they are: a
// Request.Body, and the Order.Input of providers that want one. Fields are sent in
// the order of their names, and then Files as they stand here. It is read when it
// is sent, and held in memory as a whole. A line break in a name is escaped, and a
// name with another control character refused: servers read no such part.
type Form struct {
	Fields url.Values
	Files  []File
}

// File is a file of a Form.
type File struct {
	// Field is the name that the provider has for it ("image"). Required.
	Field string
	// Name is that of the file. Empty: Field.
	Name string
	// Type is the media type of its Content. Empty: what its first bytes tell.
	Type    string
	Content []byte
}

// MarshalJSON refuses to: there are providers that take a Form, and others that
// take JSON.
func (Form) MarshalJSON() ([]byte, error) {
	return nil, errors.New("it is a Form, and not a part of JSON")
}

// encode writes the form as a body, and tells its Content-Type.
func (f Form) encode() (body []byte, contentType string, err error) {
	var b bytes.Buffer // which takes all that is written
	w := multipart.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(f.Fields)) {
		if !validPartName(name) {
			return nil, "", fmt.Errorf("jobpoll: the form has a field with a name that cannot be sent: %q", jobpoll.Excerpt(name))
		}
		for _, value := range f.Fields[name] {
			err = errors.Join(err, w.WriteField(name, value))
		}
	}
	for _, file := range f.Files {
		if file.Field == "" || !validPartName(file.Field+file.Name) || !validValue(file.Type) {
			return nil, "", fmt.Errorf("jobpoll: a file of the form has no Field, or a Field, Name or Type that cannot be sent: %q", jobpoll.Excerpt(file.Field))
		}
		kind := file.Type
		if kind == "" {
			kind = http.DetectContentType(file.Content)
		}
		p, perr := w.CreatePart(textproto.MIMEHeader{
			"Content-Disposition": {multipart.FileContentDisposition(file.Field, either(file.Name, file.Field))},
			"Content-Type":        {kind},
		})
		if err = errors.Join(err, perr); err == nil {
			_, err = p.Write(file.Content)
		}
	}
	err = errors.Join(err, w.Close())
	return b.Bytes(), w.FormDataContentType(), err
}

// validPartName reports whether a part of a form may have the name, of which package
// multipart escapes line breaks and quotes.
func validPartName(s string) bool {
	return validValue(strings.NewReplacer("\r", "", "\n", "").Replace(s))
}

// encodeBody writes the body of a Request, and tells its Content-Type.
func encodeBody(v any) (body []byte, contentType string, err error) {
	if form, ok := v.(Form); ok {
		return form.encode()
	}
	if body, err = json.Marshal(v); err != nil {
		err = fmt.Errorf("jobpoll: the body of the request: %w", err)
	}
	return body, jsonMediaType, err
}

// form is the Request of an order whose Input is a Form, with more fields; those
// without a value are left out. The provider takes no webhook with it.
func (o *Order) form(path string, values map[string]string) (Request, error) {
	form, ok := o.Input.(Form)
	if !ok {
		return Request{}, invalid("Order.Input is %T, and has to be a provider.Form", o.Input)
	}
	if err := o.noWebhook(); err != nil {
		return Request{}, err
	}
	fields := url.Values{}
	maps.Copy(fields, form.Fields)
	for name, value := range values {
		if value != "" {
			fields.Set(name, value)
		}
	}
	form.Fields = fields
	return Request{URL: path, Header: o.Header, Body: form}, nil
}
