package gosdkcheck

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/jobpoll/jobpoll/polltest/loopback"
)

// Google's clients that speak HTTP to services with operations are made of these types
// and this codec. What they stand on is too much to build here, so that the calls are
// made by hand, and the answers read as they read them, but that nothing unknown
// is passed over.
func googleCall(t *testing.T, server *loopback.Server, credential, method, path string, into proto.Message) *status.Status {
	req, err := http.NewRequestWithContext(limit(t), method, server.URL()+"/v1/"+path, strings.NewReader(`{}`))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+credential)
	answer, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	if answer.StatusCode == http.StatusOK {
		require.NoError(t, protojson.UnmarshalOptions{Resolver: googleTypes(t)}.Unmarshal(body, into), string(body))
		return nil
	}
	// An error is a status whose "code" is that of HTTP, with a name beside it.
	var wrapped structpb.Struct
	require.NoError(t, protojson.Unmarshal(body, &wrapped))
	bare := wrapped.Fields["error"].GetStructValue()
	assert.EqualValues(t, answer.StatusCode, bare.Fields["code"].GetNumberValue())
	named := code.Code_value[bare.Fields["status"].GetStringValue()]
	assert.NotZero(t, named, "no name of a code: %s", body)
	delete(bare.Fields, "status")
	text, err := protojson.Marshal(bare)
	require.NoError(t, err)
	var told status.Status
	require.NoError(t, protojson.Unmarshal(text, &told), string(text))
	told.Code = named
	return &told
}

// googleTypes are those of responses: that of the example.
func googleTypes(t *testing.T) *protoregistry.Types {
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("video.proto"), Package: proto.String("example.v1"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{
			Name: proto.String("Video"),
			Field: []*descriptorpb.FieldDescriptorProto{{
				Name: proto.String("uri"), Number: proto.Int32(1), JsonName: proto.String("uri"),
				Type: descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum(), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
			}},
		}},
	}, nil)
	require.NoError(t, err)
	var types protoregistry.Types
	require.NoError(t, types.RegisterMessage(dynamicpb.NewMessageType(file.Messages().Get(0))))
	return &types
}

func googleStart(t *testing.T, server *loopback.Server) *longrunningpb.Operation {
	var op longrunningpb.Operation
	require.Nil(t, googleCall(t, server, key, http.MethodPost, "projects/p/videos:generate", &op))
	assert.Regexp(t, "^projects/p/operations/", op.GetName())
	return &op
}

func googleUntilDone(t *testing.T, server *loopback.Server, name string) *longrunningpb.Operation {
	for {
		var op longrunningpb.Operation
		require.Nil(t, googleCall(t, server, key, http.MethodGet, name, &op))
		assert.Equal(t, name, op.GetName())
		if op.GetDone() {
			return &op
		}
		assert.Nil(t, op.GetResult())
	}
}

func TestAnOperationOfGoogleHasAResponseOfItsType(t *testing.T) {
	server := aim(t, loopback.GoogleLRO(), succeeds)
	op := googleUntilDone(t, server, googleStart(t, server).GetName())
	assert.Greater(t, server.Stats().Statuses, 2)
	response := op.GetResponse()
	require.NotNil(t, response)
	assert.Equal(t, "type.googleapis.com/example.v1.Video", response.GetTypeUrl())
	assert.Contains(t, string(response.GetValue()), "https://")
}

func TestAnOperationOfGoogleThatFailedHasACode(t *testing.T) {
	for script, want := range map[string]code.Code{
		fails: code.Code_INTERNAL, rejected: code.Code_INVALID_ARGUMENT, canceled: code.Code_CANCELLED, expires: code.Code_DEADLINE_EXCEEDED,
	} {
		server := aim(t, loopback.GoogleLRO(), script)
		op := googleUntilDone(t, server, googleStart(t, server).GetName())
		assert.EqualValues(t, want, op.GetError().GetCode(), script)
		assert.NotEmpty(t, op.GetError().GetMessage())
		assert.Nil(t, op.GetResponse())
	}
}

func TestAnOperationOfGoogleThatIsCanceledEndsSo(t *testing.T) {
	server := aim(t, loopback.GoogleLRO(), goesOn)
	name := googleStart(t, server).GetName()
	require.Nil(t, googleCall(t, server, key, http.MethodPost, name+":cancel", &structpb.Struct{}))
	assert.EqualValues(t, code.Code_CANCELLED, googleUntilDone(t, server, name).GetError().GetCode())
}

func TestErrorsOfGoogleHaveACodeAndAWait(t *testing.T) {
	server := aim(t, loopback.GoogleLRO(), `running; at 1s 429 "busy" retry-after 1500ms`)
	name := googleStart(t, server).GetName()
	var op longrunningpb.Operation
	busy := googleCall(t, server, key, http.MethodGet, name, &op)
	require.EqualValues(t, code.Code_RESOURCE_EXHAUSTED, busy.GetCode())
	assert.Equal(t, "busy", busy.GetMessage())
	require.Len(t, busy.GetDetails(), 1)
	var info errdetails.RetryInfo
	require.NoError(t, busy.GetDetails()[0].UnmarshalTo(&info))
	assert.Equal(t, "1.5s", info.GetRetryDelay().AsDuration().String())

	assert.EqualValues(t, code.Code_NOT_FOUND, googleCall(t, server, key, http.MethodGet, name+"x", &op).GetCode())
	assert.EqualValues(t, code.Code_UNAUTHENTICATED, googleCall(t, server, wrong, http.MethodGet, name, &op).GetCode())
}
