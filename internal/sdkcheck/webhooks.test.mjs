import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { sign as signGitHub, verify as verifyGitHub, verifyWithFallback } from "@octokit/webhooks-methods";
import { validateWebhook } from "replicate";
import { Webhook as Standard } from "standardwebhooks";
import { Stripe } from "stripe";
import { Webhook as Svix } from "svix";

const { SERVER_URL: server, SECRET: secret, OLD_SECRET: oldSecret } = process.env;
const stripe = new Stripe("key-of-sdkcheck");
const wrong = "whsec_d3Jvbmctc2VjcmV0LXdyb25nLXNlY3JldC13cm9uZw==";
const now = () => new Date(Math.floor(Date.now() / 1000) * 1000);

// As they are sent: spacing, escapes and signs beyond ASCII count.
const payloads = [
  '{"id":"pred-1","status":"succeeded"}',
  '{"b":1, "a":"\\u00e9", "c":"é\u{1f3ac}"}',
  `{"long":"${"x".repeat(100_000)}"}`,
];

const post = (scheme, body, headers) =>
  fetch(`${server}/verify/${scheme}`, { method: "POST", body, headers: { "content-type": "application/json", ...headers } });
const signed = async (scheme, body) => (await fetch(`${server}/sign/${scheme}`, { method: "POST", body })).json();
const lower = (headers) => Object.fromEntries(Object.entries(headers).map(([k, v]) => [k.toLowerCase(), v]));

// taken checks that what a library signs is taken, and nothing that differs.
const taken = async (scheme, headersOf) => {
  for (const body of payloads) {
    for (const key of [secret, oldSecret]) {
      const headers = await headersOf(body, key);
      assert.equal((await post(scheme, body, headers)).status, 200);
      assert.equal((await post(scheme, `${body} `, headers)).status, 401);
    }
    assert.equal((await post(scheme, body, await headersOf(body, wrong))).status, 401);
  }
};

// headers of the Standard Webhooks family
const family = (prefix, Library) => (body, key) => {
  const at = now();
  const id = `msg_${Math.random().toString(36).slice(2)}`;
  return {
    [`${prefix}-id`]: id,
    [`${prefix}-timestamp`]: String(at.getTime() / 1000),
    [`${prefix}-signature`]: new Library(key).sign(id, at, body),
  };
};

describe("webhooks", { concurrency: true }, () => {
  for (const [name, scheme, prefix, Library] of [
    ["standardwebhooks", "standard", "webhook", Standard],
    ["svix", "svix", "svix", Svix],
  ]) {
    test(`${name} signs what is verified`, () => taken(scheme, family(prefix, Library)));

    test(`${name} verifies what is signed`, async () => {
      for (const body of payloads) {
        const headers = lower(await signed(scheme, body));
        for (const key of [secret, oldSecret]) new Library(key).verify(body, headers);
        assert.throws(() => new Library(wrong).verify(body, headers));
        assert.throws(() => new Library(secret).verify(`${body} `, headers));
      }
    });

    test(`${name} signs too long ago or too far ahead`, async () => {
      for (const off of [-310_000, 310_000]) {
        const at = new Date(now().getTime() + off);
        const headers = {
          [`${prefix}-id`]: "msg_1",
          [`${prefix}-timestamp`]: String(at.getTime() / 1000),
          [`${prefix}-signature`]: new Library(secret).sign("msg_1", at, payloads[0]),
        };
        assert.equal((await post(scheme, payloads[0], headers)).status, 401);
      }
    });
  }

  test("replicate verifies what is signed", async () => {
    for (const body of payloads) {
      const headers = lower(await signed("standard", body));
      const request = () => new Request("https://service.example/", { method: "POST", body, headers });
      assert.equal(await validateWebhook(request(), secret), true);
      assert.equal(await validateWebhook(request(), wrong), false);
    }
  });

  test("stripe signs what is verified", () =>
    taken("stripe", (payload, key) => ({ "stripe-signature": stripe.webhooks.generateTestHeaderString({ payload, secret: key }) })));

  test("stripe verifies what is signed", async () => {
    for (const body of payloads) {
      const header = lower(await signed("stripe", body))["stripe-signature"];
      for (const key of [secret, oldSecret]) stripe.webhooks.constructEvent(body, header, key);
      assert.throws(() => stripe.webhooks.constructEvent(body, header, wrong));
    }
  });

  test("octokit signs what is verified", () =>
    taken("github", async (body, key) => ({ "x-hub-signature-256": await signGitHub(key, body) })));

  test("octokit verifies what is signed", async () => {
    for (const body of payloads) {
      const header = lower(await signed("github", body))["x-hub-signature-256"];
      assert.equal(await verifyGitHub(secret, body, header), true);
      assert.equal(await verifyGitHub(wrong, body, header), false);
      assert.equal(await verifyWithFallback(wrong, body, header, [secret]), true);
    }
  });
});
