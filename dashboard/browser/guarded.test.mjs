// What is guarded: changed tools of other servers, a server that asks for tokens, and sockets that pages of others would open.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import { after, before, test } from 'node:test'
import { OTHER } from './examples.mjs'
import { Browser, complaints, Server, shoot } from './place.mjs'

let browser

before(async () => {
  browser = await Browser.start()
})
after(async () => {
  await browser?.close()
})

const TOKEN = 'a token + with / odd = letters'
const AUTH = (roles) => `[[auth.tokens]]
name = "ada"
sha256 = "${createHash('sha256').update(TOKEN).digest('hex')}"
roles = ${JSON.stringify(roles)}
tenant = "default"
`

const done = async (page) => {
  assert.deepEqual(await complaints(page), [])
  await page.context().close()
}

/** Waits until the server has seen the other one. */
const seen = async (server, what) => {
  for (let tries = 0; tries < 400; tries += 1) {
    const { servers } = await server.ask('/v1/dashboard/servers')
    if (what(servers[0])) return
    await new Promise((later) => setTimeout(later, 50))
  }
  assert.fail(JSON.stringify(await server.ask('/v1/dashboard/servers')))
}

const tokenField = (page) => page.getByRole('textbox', { name: /^Token/ })

const giveToken = async (page) => {
  await tokenField(page).fill(TOKEN)
  await page.getByRole('button', { name: 'Continue' }).click()
}

test('a changed tool of another server is looked at and accepted', async () => {
  const server = await Server.with(OTHER)
  try {
    await seen(server, (other) => other.tools === 1)
    await server.kill()
    server.write('about', 'Says-hello-and-sends-your-files')
    await server.begin()
    await seen(server, (other) => other.quarantined.length === 1)
    const page = await browser.page(server)
    await page.goto(`${server.base}/tools`)
    await page.waitForSelector('text=hi is quarantined')
    assert.equal(await page.getByRole('navigation', { name: 'Tools' }).getByText('other.hi').count(), 0, 'it is not offered')
    await shoot(page, 'quarantine')
    await page.getByRole('button', { name: 'Review' }).click()
    const changes = page.getByRole('dialog').getByLabel('What changed')
    await changes.locator('[data-kind="removed"]', { hasText: '"Says-hello"' }).waitFor()
    await changes.locator('[data-kind="added"]', { hasText: 'sends-your-files' }).waitFor()
    assert.deepEqual(await complaints(page), [])
    await shoot(page, 'quarantine-change')
    await page.getByRole('button', { name: 'Leave it in quarantine' }).click()
    assert.equal((await server.ask('/v1/tools/quarantined')).tools.length, 1, 'leaving changes nothing')
    await page.getByRole('button', { name: 'Review' }).click()
    await page.getByRole('button', { name: 'Accept this change' }).click()
    await page.waitForSelector('text=other.hi is accepted as shown.')
    await page.waitForSelector('role=navigation[name="Tools"] >> text=other.hi')
    await page.waitForSelector('text=hi is quarantined', { state: 'detached' })
    assert.deepEqual((await server.ask('/v1/tools/quarantined')).tools, [])
    // Without the token of the page, a browser accepts nothing.
    const refused = await page.evaluate(() =>
      fetch('/v1/tools/accept', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"server":"other","tool":"hi","changed":"x"}' }).then((answer) => answer.status),
    )
    assert.equal(refused, 403)
    await done(page)
  } finally {
    await server.close()
  }
})

test('a token without the role accepts no changed tool', async () => {
  const server = await Server.with({ ...OTHER, 'orchestr8.toml': OTHER['orchestr8.toml'] + 'shared = true\n' + AUTH(['editor']) })
  server.token = TOKEN
  try {
    await seen(server, (other) => other.tools === 1)
    await server.kill()
    server.write('about', 'changed')
    await server.begin()
    await seen(server, (other) => other.quarantined.length === 1)
    const page = await browser.page(server)
    await page.goto(`${server.base}/tools`)
    await giveToken(page)
    await page.getByRole('button', { name: 'Review' }).click()
    await page.waitForSelector('role=dialog >> text=needs the role admin or owner')
    assert.equal(await page.getByRole('button', { name: 'Accept this change' }).count(), 0)
    await done(page)
  } finally {
    await server.close()
  }
})

test('a server that asks for tokens: one is given, and everything is live, sessions too', async () => {
  const server = await Server.with({ 'orchestr8.toml': AUTH(['owner']) })
  try {
    const page = await browser.page(server)
    await page.goto(`${server.base}/sessions`)
    // The page itself has nothing secret; what it asks for is refused, and it says so.
    await page.waitForSelector('text=This server asks for a token')
    assert.deepEqual(await complaints(page), [])
    await shoot(page, 'token')
    await tokenField(page).fill('not this one')
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.waitForSelector('text=This server asks for a token')
    await giveToken(page)
    await page.waitForSelector('[data-phase="live"]')
    await page.getByRole('button', { name: 'New session' }).click()
    await page.waitForURL('**/sessions/*')
    await page.getByLabel('Your message').fill('hello with a token')
    await page.keyboard.press('Enter')
    await page.waitForSelector('role=log >> text=Agent')
    assert.equal(await page.getByRole('log').getByText('hello with a token').count(), 2, 'said, and said back')
    await page.reload()
    await page.waitForSelector('role=log >> text=Agent')
    await page.waitForSelector('role=status >> text=Live')
    assert.equal(await page.getByText('Live, over events').count(), 0, 'the WebSocket took the token')
    await done(page)
  } finally {
    await server.close()
  }
})

test('a page of another server opens no socket here, and drives no session', async () => {
  const server = await Server.start()
  const stranger = createServer((_, response) => response.end('<!doctype html><title>not ours</title>'))
  await new Promise((ready) => stranger.listen(0, '127.0.0.1', ready))
  const tried = (page, path) =>
    page.evaluate(
      (url) =>
        new Promise((end) => {
          const socket = new WebSocket(url)
          socket.onopen = () => end('opened')
          socket.onerror = () => end('refused')
        }),
      `ws://127.0.0.1:${server.port}${path}`,
    )
  try {
    const theirs = await browser.page({ port: stranger.address().port })
    await theirs.goto(`http://127.0.0.1:${stranger.address().port}/`)
    const ours = await browser.page(server)
    await ours.goto(`${server.base}/`)
    for (const path of ['/ws/session', '/', '/ws']) {
      assert.equal(await tried(theirs, path), 'refused', path)
      assert.equal(await tried(ours, path), 'opened', path)
    }
    await theirs.context().close()
    await ours.context().close()
  } finally {
    stranger.close()
    await server.close()
  }
})
