// Each page, in both themes and on a phone: it shows what there is, breaks no rule of its content policy, and axe finds nothing serious.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { HANDBOOK, putIn } from './examples.mjs'
import { Browser, complaints, Server, shoot } from './place.mjs'

let server, browser, ids

before(async () => {
  ;[server, browser] = await Promise.all([Server.start(), Browser.start()])
  ids = await putIn(server)
})
after(async () => {
  await browser?.close()
  await server?.close()
})

/** Where, and what must be seen there. */
const pages = () => [
  ['overview', '/', 'text=How long they took'],
  ['executions', '/executions', 'role=row >> text=Data pipeline'],
  ['execution', `/executions/${ids.pipeline}?step=invoices`, '.react-flow__node >> text=full-report'],
  ['execution-failed', `/executions/${ids.saga}?tab=waterfall&step=ship`, "text=there is no tool named 'courier_service'"],
  ['execution-journal', `/executions/${ids.pipeline}?tab=journal`, 'role=table[name="Journal"] >> text=execution-start'],
  ['execution-data', `/executions/${ids.pipeline}?tab=data`, 'text=Variables'],
  ['approval', `/executions/${ids.approval}`, 'role=button[name="Approve"]'],
  ['workflows', '/workflows', 'role=row >> text=Hello, world'],
  ['workflow', '/workflows/data-pipeline', '.react-flow__node >> text=full-report'],
  ['workflow-edit', '/workflows/hello-world?tab=edit', 'text=Everything is in order'],
  ['schedules', '/workflows?tab=schedules', 'text=every-night'],
  ['sessions', '/sessions', 'text=Choose a session, or begin one'],
  ['tools', '/tools/echo', 'role=button[name="Call"]'],
  ['knowledge', `/knowledge/${HANDBOOK}?tab=history&q=when+are+refunds+paid`, 'mark >> text=Refunds'],
  ['messages', '/messages', 'role=table[name="Requests"] >> text=completed'],
  ['pairs', '/messages?tab=pairs', 'role=table[name="Pairs"] >> text=builder'],
  ['agents', '/messages?tab=agents', 'main >> text=Builds what the planner plans'],
  ['dead-letters', '/messages?tab=dead', 'text=Nothing was given up'],
  ['plans', '/plans', 'text=No plan waits for a decision'],
  ['secrets', '/secrets', 'role=button[name="New secret"]'],
  ['audit', '/audit', 'text=The trail is whole.'],
  ['tokens', '/tokens', 'role=button[name="New token"]'],
]

for (const dark of [false, true]) {
  test(`every page in the ${dark ? 'dark' : 'light'} theme`, async () => {
    const page = await browser.page(server, { dark })
    for (const [name, path, seen] of pages()) {
      await page.goto(server.base + path)
      await page.waitForSelector(seen, { timeout: 20_000 }).catch((error) => assert.fail(`${name}: ${error.message}`))
      await page.waitForSelector('[data-phase="live"]')
      assert.deepEqual(await complaints(page), [], name)
      await shoot(page, `${name}-${dark ? 'dark' : 'light'}`)
    }
    await page.context().close()
  })
}

test('every page on a phone: nothing is wider than the screen', async () => {
  const page = await browser.page(server, { phone: true })
  for (const [name, path] of pages()) {
    await page.goto(server.base + path)
    await page.waitForSelector('main :is(h1, h2)')
    const tooWide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
    assert.equal(tooWide, 0, name)
    const cut = await page.evaluate(() => [...document.querySelectorAll('[role="table"], nav')].filter((part) => part.scrollWidth > part.clientWidth).map((part) => part.getAttribute('aria-label')))
    assert.deepEqual(cut, [], `${name}: nothing is cut off at the side`)
    assert.deepEqual(await complaints(page), [], name)
    await shoot(page, `${name}-phone`)
  }
  await page.context().close()
})

test('the theme is chosen on a phone, by finger and by key, and kept', async () => {
  const page = await browser.page(server, { phone: true })
  const theme = () => page.evaluate(() => document.documentElement.dataset.theme)
  await page.goto(`${server.base}/`)
  await page.waitForSelector('[data-phase="live"]')
  assert.equal(await theme(), 'light', 'as the machine has it')
  const dark = page.getByRole('group', { name: 'Theme' }).getByRole('radio', { name: 'Dark' })
  const room = await dark.locator('..').boundingBox()
  assert.ok(room.width >= 36 && room.height >= 36, `room for a finger: ${room.width} by ${room.height}`)
  await dark.locator('..').click()
  assert.equal(await theme(), 'dark')
  await page.goto(`${server.base}/executions`)
  await page.waitForSelector('role=row >> text=Data pipeline')
  assert.equal(await theme(), 'dark', 'kept over a load')
  assert.deepEqual(await complaints(page), [])
  await shoot(page, 'theme-phone')
  // The one that is chosen takes the focus, and arrows move it.
  await page.getByRole('radio', { name: 'Dark' }).focus()
  await page.keyboard.press('ArrowLeft')
  assert.equal(await theme(), 'light')
  assert.ok(await page.getByRole('radio', { name: 'Light' }).isChecked())
  // Letters are still for the pages.
  await page.keyboard.press('g')
  await page.keyboard.press('a')
  await page.waitForURL('**/audit')
  await page.context().close()
})

test('an empty server says what to do on every page', async () => {
  const empty = await Server.start()
  try {
    const page = await browser.page(empty)
    for (const [path, seen] of [
      ['/', 'Begin here'],
      ['/executions', 'Nothing has run yet'],
      ['/workflows', 'No workflow is stored'],
      ['/sessions', 'No session yet'],
      ['/knowledge', 'There are no documents yet'],
      ['/tools', 'None yet. Add one'],
      ['/messages', 'No agent has asked another anything'],
      ['/messages?tab=pairs', 'No agent has sent anything yet'],
      ['/executions/exec-none', "there is no execution named 'exec-none'"],
    ]) {
      await page.goto(empty.base + path)
      await page.waitForSelector(`text=${seen}`)
      assert.deepEqual(await complaints(page), [], path)
    }
    await shoot(page, 'empty')
    await page.context().close()
  } finally {
    await empty.close()
  }
})

test('the keyboard goes everywhere', async () => {
  const page = await browser.page(server)
  await page.goto(`${server.base}/`)
  await page.waitForSelector('text=How long they took')
  await page.keyboard.press('g')
  await page.keyboard.press('e')
  await page.waitForURL('**/executions')
  await page.waitForSelector('input[type="search"]')
  await page.keyboard.press('/')
  assert.equal(await page.evaluate(() => document.activeElement.type), 'search')
  await page.keyboard.press('Escape')
  await page.evaluate(() => document.activeElement.blur())
  await page.keyboard.press('?')
  await page.waitForSelector('role=dialog[name="Keyboard"]')
  assert.deepEqual(await complaints(page), [])
  await page.keyboard.press('Escape')
  await page.waitForSelector('role=dialog', { state: 'detached' })
  // A line of a table opens by Enter.
  await page.goto(`${server.base}/audit`)
  await page.getByRole('row').nth(1).focus()
  await page.keyboard.press('Enter')
  await page.waitForSelector('role=dialog >> text=argsHash')
  await page.context().close()
})

test('the page is served as it should be', async () => {
  const index = await fetch(`${server.base}/`)
  const policy = index.headers.get('content-security-policy')
  assert.match(policy, /script-src 'self'/)
  assert.doesNotMatch(policy, /unsafe|\*/)
  const text = await index.text()
  const script = /src="(\/assets\/[^"]+\.js)"/.exec(text)[1]
  const asset = await fetch(server.base + script, { headers: { 'accept-encoding': 'gzip' } })
  assert.match(asset.headers.get('cache-control'), /immutable/)
  assert.equal(asset.headers.get('content-encoding'), 'gzip')
  assert.equal((await fetch(`${server.base}/assets/none.js`)).status, 404)
})

test('the first view is at most 150 kB', async () => {
  const page = await browser.page(server)
  const session = await page.context().newCDPSession(page)
  await session.send('Network.enable')
  const names = new Map()
  let bytes = 0
  session.on('Network.responseReceived', ({ requestId, response }) => names.set(requestId, new URL(response.url).pathname))
  session.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
    const name = names.get(requestId) ?? ''
    // Charts come after the first view, and data is data.
    if (/\.(js|css|svg)$|^\/$/.test(name) && !/charts/.test(name)) bytes += encodedDataLength
  })
  await page.goto(`${server.base}/`)
  await page.waitForSelector('text=Under way')
  assert.ok(bytes > 20_000 && bytes <= 150_000, `${bytes} bytes`)
  await page.context().close()
})
