module github.com/jobpoll/jobpoll/internal/webhookcheck

go 1.25.0

require (
	github.com/jobpoll/jobpoll v0.0.0
	github.com/standard-webhooks/standard-webhooks/libraries v0.0.1
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/cenkalti/backoff/v4 v4.3.0 // indirect
	github.com/golang-jwt/jwt/v5 v5.3.1 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/time v0.15.0 // indirect
)

replace github.com/jobpoll/jobpoll => ../..
