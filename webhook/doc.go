// Package webhook takes the deliveries of providers and hands them to a Poller:
// a webhook tells, and the Poller's slow looks make sure.
//
//	verifier, err := webhook.NewStandard(webhook.StandardConfig{Secrets: []string{secret}})
//	…
//	hooks, err := webhook.New(webhook.Config{
//		Notifier: poller,
//		Routes: []webhook.Route{{
//			Path:     "/hooks/replicate",
//			Name:     "replicate",
//			Verifier: verifier,
//			Parse:    provider.ReplicateNotice,
//			Trust:    jobpoll.TrustAuthoritative,
//		}},
//	})
//	…
//	mux.Handle("/hooks/", hooks)
//
// # Who signs how
//
//	provider                     Verifier      notices
//	Replicate, Kling (secret     NewStandard   whole
//	set), svix
//	OpenAI, Gemini's endpoints   NewStandard   thin: hints
//	of a project
//	WaveSpeed                    NewWaveSpeed  whole
//	fal                          NewFal        whole, but what did not fit
//	Atlas Cloud                  NewAtlas      whole
//	Sync.so (Sync-Signature)     NewStripe     whole
//	your own, in GitHub's format NewGitHub     as you send them
//	Gemini, URL given with the   NewJWT        hints
//	request
//	Luma, MiniMax, Ark, Kling    NewToken      hints
//	without a secret
//
// A secret "whsec_…" means four things to four senders: which is said by the
// Verifier and by SecretForm, and not guessed. Keys can be exchanged without a
// gap, as each Verifier takes several at once. polltest/sign signs for tests.
//
// # How far a notice is believed
//
// Not at all beyond "look now", unless three agree: Route.Trust says so, the
// Verifier has proved the whole body, and Parse found all in it that a look would
// tell. All else is a hint.
//
// # What the sender gets
//
//	200  the notice was taken over (Notify returned nil: applied, a repeat, or
//	     kept for a job that is not watched yet), is about no job, or was a
//	     challenge; GET and HEAD, which ask whether somebody is there
//	400  it is genuine, but Parse could make nothing of it
//	401  it is not: with no word why and, where a key is secret, after the same
//	     work whatever was wrong
//	404  there is no route at that path
//	405  another method
//	408  the body broke off, or did not come in Config.BodyTimeout
//	413  the body is longer than Config.MaxBody
//	415  the body is compressed: what is signed are the bytes that were sent, and
//	     nothing is ever unpacked
//	500  a function of the program panicked
//	503  send it again: Notify returned an error, whichever (jobpoll.ErrNotTaken,
//	     ErrUnknownRoute and ErrShutdown among them: another instance, or this
//	     one in a moment, may take it), the keys to verify it could not be had,
//	     or Config.MaxHeld bytes are in hand
//
// The answer does not wait for callbacks of the Poller: those run behind; its
// Hooks.Noticed and Hooks.Late are telemetry, and run before. An
// event id is remembered by the Poller once the notice was taken over, and not
// before, so that one which failed comes through when it is sent again.
//
// The timeouts of the http.Server are yours to set: ReadHeaderTimeout,
// IdleTimeout, and MaxHeaderBytes.
package webhook
