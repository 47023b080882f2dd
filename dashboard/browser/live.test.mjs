// Live: what happens is seen at once, a server that is killed is missed and found again, and much of everything does not stall the page.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { held, letGo, waiting } from './examples.mjs'
import { Browser, complaints, Server, shoot } from './place.mjs'
import { Relay } from './relay.mjs'

let server, browser

before(async () => {
  ;[server, browser] = await Promise.all([Server.start(), Browser.start()])
})
after(async () => {
  await browser?.close()
  await server?.close()
})

/** How long the page was busy at a stretch, from here on. */
const watchTasks = async (page) => {
  page.unit = await unit(page)
  await page.evaluate(() => {
    globalThis.tasks = []
    new PerformanceObserver((list) => globalThis.tasks.push(...list.getEntries().map((entry) => entry.duration))).observe({ type: 'longtask', buffered: false })
  })
}
/** What this machine needs for a fixed piece of work, so that a busy one is not mistaken for a slow page. */
const unit = (page) =>
  page.evaluate(() => {
    const began = performance.now()
    let sum = 0
    for (let i = 0; i < 3e7; i += 1) sum = (sum + i) | 0
    return performance.now() - began + (sum === 1 ? 1 : 0)
  })
const limit = async (page) => Math.max(250, 10 * (await unit(page)), 10 * (page.unit ?? 0))
const longest = (page) => page.evaluate(() => Math.max(0, ...globalThis.tasks))

/** Steps, one after the other, that each do something for 500 items: a thousand events a step. */
const many = (id, count) => ({
  id, version: '1.0.0', name: 'Long', variables: { items: Array.from({ length: 500 }, (_, index) => index) },
  steps: Array.from({ length: count }, (_, index) => ({
    id: `s${index}`, agentId: '@orchestr8/echo', ...(index > 0 ? { dependencies: [`s${index - 1}`] } : {}), input: { n: '${item}' },
    forEach: { items: '${variables.items}', concurrency: 10 },
  })),
})

const hello = { id: 'quick', version: '1.0.0', name: 'Quick', steps: [{ id: 'a', agentId: '@orchestr8/echo', input: { text: 'x' } }] }

test('an execution appears and ends in an open list, and its steps change in an open graph', async () => {
  const list = await browser.page(server)
  await list.goto(`${server.base}/executions`)
  await list.waitForSelector('text=Nothing has run yet')
  await list.waitForSelector('[data-phase="live"]')
  const id = await server.run(held('live'))
  await list.waitForSelector('role=row >> text=waiting')
  const graph = await browser.page(server)
  await graph.goto(`${server.base}/executions/${id}`)
  await graph.waitForSelector('[data-state="waiting"] >> text=rest')
  await graph.waitForSelector('[data-phase="live"]')
  await letGo(server, id)
  await graph.waitForSelector('[data-state="completed"] >> text=last')
  await list.waitForSelector('role=row >> text=completed')
  for (const page of [list, graph]) {
    assert.deepEqual(await complaints(page), [])
    await page.context().close()
  }
})

test('a server that is killed is missed, and found again where it was', async () => {
  const id = await server.run(held('killed'))
  const page = await browser.page(server)
  await page.goto(`${server.base}/executions/${id}`)
  await page.waitForSelector('[data-phase="live"]')
  await page.waitForSelector('[data-state="waiting"] >> text=rest')
  await server.kill()
  await page.waitForSelector('text=The server is away.')
  await page.waitForSelector('[data-phase="away"]')
  assert.ok(await page.getByText('Waits killed').isVisible(), 'what was seen stays')
  assert.deepEqual(await complaints(page), [])
  await shoot(page, 'away')
  await server.begin()
  // It comes back by itself: nobody presses anything.
  await page.waitForSelector('[data-phase="live"]', { timeout: 60_000 })
  await letGo(server, id)
  await page.waitForSelector('[data-state="completed"] >> text=last', { timeout: 60_000 })
  assert.equal(await page.getByText('The server is away.').count(), 0)
  await page.context().close()
})

test('without WebSockets it is live over server-sent events', async () => {
  const page = await browser.page(server)
  await page.addInitScript(() => {
    globalThis.WebSocket = class extends EventTarget {
      constructor() {
        super()
        setTimeout(() => this.onclose?.(), 0)
      }
      close() {}
    }
  })
  await page.goto(`${server.base}/executions`)
  await page.waitForSelector('text=Live, over events', { timeout: 15_000 })
  const id = await server.run({ ...waiting('events', 500), name: 'Over events' })
  await page.waitForSelector('role=row >> text=Over events')
  await server.ended(id)
  await page.context().close()
})

test('10,000 executions are listed and scrolled without a stall', async () => {
  const count = Number(process.env.O8_BROWSER_EXECUTIONS ?? 10_000)
  for (let done = 0; done < count; done += 100) {
    await Promise.all(Array.from({ length: Math.min(100, count - done) }, () => server.run(hello)))
  }
  const page = await browser.page(server)
  await page.goto(`${server.base}/executions`)
  await page.waitForSelector('role=row >> text=Quick')
  await watchTasks(page)
  const table = page.getByRole('table', { name: 'Executions' })
  for (let shown = ''; !/that is all/.test(shown); ) {
    await table.evaluate((frame) => frame.scrollTo({ top: frame.scrollHeight }))
    // Either a page more, or the end.
    const next = await page.waitForFunction((before) => {
      const text = document.querySelector('[data-testid="count"]')?.textContent ?? ''
      return text !== before || /that is all/.test(text) ? text : null
    }, shown)
    shown = await next.jsonValue()
  }
  const shown = Number((await page.getByTestId('count').innerText()).replace(/[^0-9].*$/s, (rest) => rest.replace(/[^0-9]/g, '')).replace(/,/g, ''))
  assert.ok(shown >= count, `${shown} of ${count} are shown`)
  assert.ok((await page.getByRole('row').count()) < 120, 'only what is seen is drawn')
  const ms = await longest(page)
  console.log(`${shown.toLocaleString("en")} executions: longest task ${Math.round(ms)} ms`)
  assert.ok(ms < (await limit(page)), `a task took ${ms} ms`)
  assert.deepEqual(await complaints(page, { axeToo: false }), [])
  await page.context().close()
})

test('5,000 entries of a journal are followed without a stall', async () => {
  const id = await server.run(many('long', 5))
  const page = await browser.page(server)
  await page.goto(`${server.base}/executions/${id}?tab=journal`)
  await page.waitForSelector('role=table[name="Journal"]')
  await watchTasks(page)
  await page.getByLabel('Follow').check()
  await page.waitForFunction(() => /^5,\d{3} of 5,\d{3} entries$/.test(document.querySelector('[data-testid="entries"]')?.textContent ?? ''), null, { timeout: 60_000 })
  await page.waitForSelector('role=table[name="Journal"] >> text=execution-complete')
  assert.ok((await page.getByRole('row').count()) < 120, 'only what is seen is drawn')
  const ms = await longest(page)
  console.log(`5,000 entries: longest task ${Math.round(ms)} ms`)
  assert.ok(ms < (await limit(page)), `a task took ${ms} ms`)
  await page.context().close()
})

/** Counts what the page hears, not what we believe to have caused. */
const listenIn = (page) =>
  page.addInitScript(() => {
    globalThis.heard = 0
    const Real = globalThis.WebSocket
    globalThis.WebSocket = class extends Real {
      constructor(...args) {
        super(...args)
        this.addEventListener('message', () => (globalThis.heard += 1))
      }
    }
  })

test('500 events a second do not stall the page', async () => {
  const page = await browser.page(server)
  await listenIn(page)
  await page.goto(`${server.base}/`)
  await page.waitForSelector('text=How long they took')
  await page.waitForSelector('[data-phase="live"]')
  await watchTasks(page)
  const count = 5_000
  const frames = page.evaluate(
    (count) =>
      new Promise((done) => {
        let [frames, worst, began] = [0, 0, performance.now()]
        let [last, first] = [began, globalThis.heard]
        const draw = (now) => {
          frames += 1
          worst = Math.max(worst, now - last)
          last = now
          const [events, seconds] = [globalThis.heard - first, (now - began) / 1_000]
          if (events < count) requestAnimationFrame(draw)
          else done({ events, seconds, perSecond: frames / seconds, worst })
        }
        requestAnimationFrame(draw)
      }),
    count,
  )
  // New executions of four events each, and others that tell a thousand: faster than the page has to bear, until it has heard enough.
  let isOver = false
  const over = frames.then(() => (isOver = true))
  for (let round = 0; !isOver; round += 1) {
    const pause = new Promise((later) => setTimeout(later, 250))
    await Promise.all([...Array.from({ length: 12 }, () => server.run(hello)), ...(round % 4 === 0 ? [server.run(many('burst', 1))] : [])])
    await Promise.race([over, pause])
  }
  const drawn = await frames
  const ms = await longest(page)
  console.log(`${Math.round(drawn.events / drawn.seconds)} events/s: ${Math.round(drawn.perSecond)} frames/s, worst frame ${Math.round(drawn.worst)} ms, longest task ${Math.round(ms)} ms`)
  assert.ok(ms < (await limit(page)), `a task took ${ms} ms`)
  assert.deepEqual(await complaints(page, { axeToo: false }), [])
  await page.context().close()
})

/** Events of the server from the beginning on, as many as are wanted. */
const recorded = async (count) => {
  const { body } = await fetch(`${server.base}/v1/events?lastEventId=0`)
  const events = []
  let rest = ''
  for await (const piece of body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + piece).split('\n')
    rest = lines.pop()
    for (const line of lines) if (line.startsWith('data:')) events.push(JSON.parse(line.slice(5)))
    // Leaving the loop ends the stream.
    if (events.length > count) break
  }
  return events.filter((event) => event.executionId).slice(0, count)
}

for (const [name, path, seen] of [['overview', '/', 'text=How long they took'], ['list', '/executions', 'role=row >> text=Quick']]) {
  test(`a burst of 4,000 events a second does not stall the ${name}; what is skipped is said, and reloaded`, async () => {
    for (let run = 0; run < 100; run += 10) await Promise.all(Array.from({ length: 10 }, () => server.run(hello)))
    const some = await recorded(400)
    const events = Array.from({ length: 20_000 }, (_, index) => ({ ...some[index % some.length], id: index + 1 }))
    const relay = await Relay.start(server)
    try {
      const page = await browser.page(relay)
      await listenIn(page)
      await page.goto(relay.base + path)
      await page.waitForSelector(seen)
      await page.waitForSelector('[data-phase="live"]')
      // The first drawing is not what is measured.
      await page.evaluate(() => new Promise((done) => requestIdleCallback(done)))
      await watchTasks(page)
      const began = await page.evaluate(() => performance.now())
      const pace = await relay.tell(events, 4_000)
      await page.waitForFunction((count) => globalThis.heard > count, events.length)
      const seconds = ((await page.evaluate(() => performance.now())) - began) / 1_000
      await page.waitForSelector('role=status >> text=/^[0-9,]+ events skipped, reloaded$/')
      const ms = await longest(page)
      console.log(`${Math.round(pace)} events/s told to the ${name}, ${Math.round(events.length / seconds)}/s heard: longest task ${Math.round(ms)} ms`)
      await shoot(page, `burst-${name}`)
      assert.ok(ms < (await limit(page)), `a task took ${ms} ms`)
      // What happened meanwhile is shown although no event told of it one by one.
      if (name === 'list') {
        await server.run({ ...hello, name: 'After the burst' })
        await relay.tell(events.slice(0, 1_000), 10_000)
        await page.waitForSelector('role=row >> text=After the burst')
      }
      assert.deepEqual(await complaints(page, { axeToo: false }), [])
      await page.context().close()
    } finally {
      await relay.close()
    }
  })
}
