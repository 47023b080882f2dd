// What people do: approve, fork, pause, write, ask, call, talk; and what pages of others may not do.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { after, before, test } from 'node:test'
import { putIn, waiting } from './examples.mjs'
import { Browser, complaints, Server } from './place.mjs'

let server, browser, ids

before(async () => {
  ;[server, browser] = await Promise.all([Server.start(), Browser.start()])
  ids = await putIn(server)
})
after(async () => {
  await browser?.close()
  await server?.close()
})

const at = async (path) => {
  const page = await browser.page(server)
  await page.goto(server.base + path)
  return page
}

const done = async (page) => {
  assert.deepEqual(await complaints(page), [])
  await page.context().close()
}

test('somebody approves, and the execution goes on before their eyes', async () => {
  const page = await at(`/executions/${ids.approval}`)
  await page.getByLabel('headline').fill('Read this')
  await page.getByLabel('Comment (optional)').fill('well done')
  await page.getByRole('button', { name: 'Approve' }).click()
  await page.waitForSelector('h1:has-text("Publish") + span:has-text("completed")')
  await page.waitForSelector('[data-state="completed"] >> text=publish')
  const ended = await server.ended(ids.approval)
  assert.equal(ended.steps.review.output.decision, 'approved')
  assert.equal(ended.steps.publish.output.headline, 'Read this')
  await done(page)
})

test('a fork from a step with another input', async () => {
  const page = await at(`/executions/${ids.hello}?step=answer`)
  await page.getByRole('button', { name: 'Fork' }).click()
  await page.getByLabel('Its input').fill('{"text":"forked"}')
  await page.getByRole('dialog').getByRole('button', { name: 'Fork' }).click()
  await page.waitForSelector('text=forked from')
  const id = decodeURIComponent(new URL(page.url()).pathname.split('/').pop())
  assert.notEqual(id, ids.hello)
  const forked = await server.ended(id)
  assert.equal(forked.forkedFrom, ids.hello)
  assert.deepEqual(forked.outputs.answer, { text: 'forked' })
  await done(page)
})

test('bad JSON is said at its field and sends nothing', async () => {
  const page = await at(`/executions/${ids.hello}?step=answer`)
  await page.getByRole('button', { name: 'Fork' }).click()
  await page.getByLabel('Its input').fill('{"text":')
  assert.ok(await page.getByRole('dialog').getByRole('button', { name: 'Fork' }).isDisabled())
  await done(page)
})

test('pause, resume, cancel and retry', async () => {
  const id = await server.run(waiting('paused', 600_000))
  const page = await at(`/executions/${id}`)
  await page.getByRole('button', { name: 'Pause' }).click()
  await page.waitForSelector('text=It is paused')
  await page.getByRole('button', { name: 'Resume' }).click()
  await page.waitForSelector('h1 + span:has-text("waiting")')
  await page.getByRole('button', { name: 'Cancel' }).click()
  await page.getByLabel('Why (optional)').fill('changed my mind')
  await page.getByRole('button', { name: 'Cancel it' }).click()
  await page.waitForSelector('h1 + span:has-text("cancelled")')
  assert.equal((await server.ended(id)).cancelReason, 'changed my mind')
  await page.getByRole('button', { name: 'Retry' }).click()
  await page.waitForSelector('h1 + span:has-text("waiting")')
  await server.ask(`/v1/executions/${id}/cancel`, {})
  await done(page)
})

test('any moment of the past can be looked at', async () => {
  const page = await at(`/executions/${ids.pipeline}`)
  await page.waitForSelector('[data-state="completed"] >> text=full-report')
  const slider = page.getByRole('slider', { name: 'Moment in the journal' })
  await slider.focus()
  await page.keyboard.press('Home')
  await page.waitForSelector('[data-state="pending"] >> text=full-report')
  await page.getByRole('button', { name: 'Back to now' }).click()
  await page.waitForSelector('[data-state="completed"] >> text=full-report')
  await done(page)
})

test('the editor tells the server\'s own complaints while one types, and stores what is sound', async () => {
  const page = await at('/workflows/new')
  const area = page.getByLabel('Definition of the workflow, as JSON')
  await page.waitForSelector('text=Everything is in order')
  const text = await area.inputValue()
  await area.fill(text.replace('"dependencies": ["greet"]', '"dependencies": ["nobody"]'))
  await page.waitForSelector('role=list[name="Problems"] >> text=nobody')
  assert.ok(await page.getByRole('button', { name: 'Store' }).isDisabled())
  await area.fill('{ "id": ')
  await page.waitForSelector('text=Workflows are written in JSON.')
  await area.fill(text)
  await page.waitForSelector('text=Everything is in order')
  await page.getByRole('button', { name: 'Store' }).click()
  await page.waitForURL('**/workflows/greeting')
  await page.getByLabel('who').fill('Grace')
  await page.getByRole('button', { name: 'Run', exact: true }).click()
  await page.waitForURL('**/executions/exec-*')
  await page.waitForSelector('h1 + span:has-text("completed")')
  await page.getByRole('tab', { name: 'Data' }).click()
  await page.waitForSelector('text=Hello, Grace! How are you?')
  await done(page)
})

test('a step of a graph is chosen by key, and what it was given is shown', async () => {
  const page = await at(`/executions/${ids.saga}`)
  await page.locator('.react-flow__node[data-id="ship"]').focus()
  await page.keyboard.press('Enter')
  await page.waitForURL('**/executions/*?step=ship')
  await page.waitForSelector('[aria-label="Input"] >> text=Ship teapot')
  await done(page)
})

test('a schedule is made, refused where it makes no sense, and removed', async () => {
  const page = await at('/workflows?tab=schedules')
  await page.getByRole('button', { name: 'New schedule' }).click()
  await page.getByRole('dialog').getByLabel('Workflow').selectOption('hello-world')
  await page.getByLabel('When, as cron has it').fill('61 * * * *')
  await page.getByRole('button', { name: 'Schedule', exact: true }).click()
  await page.waitForSelector("text='61 * * * *' is no cron expression")
  await page.getByLabel('When, as cron has it').fill('5 * * * *')
  await page.getByRole('button', { name: 'Schedule', exact: true }).click()
  await page.waitForSelector('text=hello-world-schedule is scheduled.')
  assert.equal((await server.ask('/v1/schedules/hello-world-schedule')).cron, '5 * * * *')
  await page.getByRole('button', { name: 'Remove hello-world-schedule' }).click()
  await page.getByRole('button', { name: 'Remove it' }).click()
  await page.waitForSelector('text=hello-world-schedule is removed.')
  assert.deepEqual((await server.ask('/v1/schedules')).schedules.map((one) => one.id), ['every-night'])
  await done(page)
})

test('whoever types the name of a workflow is led to its executions', async () => {
  const page = await at('/executions')
  await page.getByRole('searchbox').fill('pipeline')
  await page.waitForSelector('text=Executions of:')
  await page.getByRole('link', { name: 'Data pipeline' }).click()
  await page.waitForURL('**/executions?workflow=data-pipeline')
  await page.waitForSelector('role=row >> text=Data pipeline')
  assert.equal(await page.getByRole('searchbox').inputValue(), '')
  await done(page)
})

test('filters are in the address', async () => {
  const page = await at('/executions')
  await page.getByLabel('State', { exact: true }).selectOption('compensated')
  await page.waitForURL('**/executions?status=compensated')
  await page.waitForSelector('role=row >> text=Order with compensation')
  assert.equal(await page.getByRole('row').filter({ hasText: 'Data pipeline' }).count(), 0)
  await page.reload()
  await page.waitForSelector('role=row >> text=Order with compensation')
  assert.equal(await page.getByLabel('State', { exact: true }).inputValue(), 'compensated')
  await done(page)
})

test('a tool is called by its form and by hand', async () => {
  const page = await at('/tools/echo')
  await page.getByLabel('message *').fill('over the form')
  await page.getByRole('button', { name: 'Call' }).click()
  await page.waitForSelector('text=It answered')
  await page.waitForSelector('pre >> text=over the form')
  await page.getByRole('tab', { name: 'JSON-RPC' }).click()
  const message = JSON.parse(await page.getByLabel('Message').inputValue())
  message.params.arguments = { nothing: true }
  await page.getByLabel('Message').fill(JSON.stringify(message))
  await page.getByRole('button', { name: 'Call' }).click()
  await page.waitForSelector('text=It failed')
  await done(page)
})

test('a conversation: streamed, with a tool, and forked', async () => {
  const page = await at('/sessions')
  await page.getByRole('button', { name: 'New session' }).click()
  await page.waitForURL('**/sessions/*')
  await page.getByLabel('Your message').fill('hello there')
  await page.keyboard.press('Enter')
  await page.waitForSelector('role=log >> text=Agent')
  await page.getByLabel('Your message').fill('/tool echo {"message":"hi"}')
  await page.getByRole('button', { name: 'Send' }).click()
  await page.waitForSelector('role=log >> text=echo answered: {"message":"hi"}')
  await page.waitForSelector('[data-testid="stats"] >> text=tokens in')
  const before = page.url()
  await page.getByRole('button', { name: 'Tree' }).click()
  await page.getByRole('button', { name: 'Fork' }).last().click()
  await page.waitForFunction((url) => location.href !== url, before)
  await page.waitForSelector('role=log >> text=hello there')
  assert.equal(await page.getByRole('log').getByText('echo answered').count(), 0)
  await done(page)
})

test('a page of another server may change nothing here', async () => {
  const stranger = createServer((_, response) => response.end('<!doctype html><title>not ours</title>'))
  await new Promise((ready) => stranger.listen(0, '127.0.0.1', ready))
  try {
    const page = await browser.page({ port: stranger.address().port })
    await page.goto(`http://127.0.0.1:${stranger.address().port}/`)
    const url = `${server.base}/v1/executions/${ids.pipeline}/cancel`
    await page.evaluate((url) => fetch(url, { method: 'POST', mode: 'no-cors', body: '{}' }).catch(() => null), url)
    await page.context().close()
    const ours = await at('/')
    const refused = await ours.evaluate((url) => fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' }).then((answer) => answer.json().then((body) => [answer.status, body.error.code])), url)
    assert.deepEqual(refused, [403, 'FORBIDDEN'])
    await ours.context().close()
    // A program that is no browser is not asked.
    const answered = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' })
    assert.equal(answered.status, 200)
  } finally {
    stranger.close()
  }
})
