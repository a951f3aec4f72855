module github.com/jobpoll/jobpoll/internal/gosdkcheck

go 1.26.0

require (
	github.com/jobpoll/jobpoll v0.0.0
	github.com/openai/openai-go/v3 v3.8.1
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/cenkalti/backoff/v4 v4.3.0 // indirect
	github.com/tidwall/gjson v1.20.0 // indirect
	github.com/tidwall/match v1.1.1 // indirect
	github.com/tidwall/pretty v1.2.1 // indirect
	github.com/tidwall/sjson v1.2.5 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/time v0.15.0 // indirect
)

replace github.com/jobpoll/jobpoll => ../..
