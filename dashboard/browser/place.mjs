// What every browser test needs: a real server on a fresh folder, a real Chromium, and an eye on what goes wrong in the page.
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium } from 'playwright-core'

const binary = process.env.O8_BINARY ?? 'orchestr8'
const shots = process.env.O8_SHOTS
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

export async function freePort() {
  const probe = createServer()
  await new Promise((ready) => probe.listen(0, '127.0.0.1', ready))
  const { port } = probe.address()
  await new Promise((closed) => probe.close(closed))
  return port
}

/** A server that can be killed and started again on the same data and the same port. */
export class Server {
  constructor(port, folder) {
    this.port = port
    this.folder = folder
    this.base = `http://127.0.0.1:${port}`
    this.log = ''
  }

  static start(...flags) {
    return Server.with({}, ...flags)
  }

  /** The same with files in the folder where it runs. */
  static async with(files, ...flags) {
    const server = new Server(await freePort(), mkdtempSync(join(tmpdir(), 'orchestr8-browser-')))
    for (const [name, text] of Object.entries(files)) server.write(name, text)
    // Named, since a configuration that is merely found has to be trusted first.
    server.config = 'orchestr8.toml' in files ? ['--config', 'orchestr8.toml'] : []
    await server.begin(...flags)
    return server
  }

  write(name, text) {
    writeFileSync(join(this.folder, name), text)
  }

  async begin(...flags) {
    const args = ['serve', '--listen', `127.0.0.1:${this.port}`, '--data-dir', join(this.folder, 'data'), ...(this.config ?? []), ...flags]
    this.child = spawn(binary, args, { cwd: this.folder, stdio: ['ignore', 'pipe', 'pipe'] })
    for (const stream of [this.child.stdout, this.child.stderr]) stream.on('data', (text) => (this.log += text))
    for (let tries = 0; ; tries += 1) {
      if (await fetch(`${this.base}/readyz`).then((found) => found.ok, () => false)) return
      if (tries > 300 || this.child.exitCode !== null) throw new Error(`the server did not start\n${this.log}`)
      await new Promise((later) => setTimeout(later, 50))
    }
  }

  /** kill -9, and its end. */
  async kill() {
    const ended = new Promise((end) => this.child.once('exit', end))
    this.child.kill('SIGKILL')
    await ended
  }

  async close() {
    if (this.child.exitCode === null && this.child.signalCode === null) await this.kill()
    rmSync(this.folder, { recursive: true, force: true })
  }

  async ask(path, body, method = body === undefined ? 'GET' : 'POST') {
    const response = await fetch(this.base + path, {
      method,
      headers: { 'content-type': 'application/json', ...(this.token ? { authorization: `Bearer ${this.token}` } : {}) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
    return text === '' ? null : JSON.parse(text)
  }

  run(workflow) {
    return this.ask('/v1/workflows/execute', { workflow }).then((begun) => begun.executionId)
  }

  ended(id) {
    return this.ask(`/v1/executions/${id}?wait=30`)
  }
}

/** A browser whose pages may not complain: no error, no refused script, no request to anywhere else. */
export class Browser {
  static async start() {
    const browser = new Browser()
    const executablePath = process.env.O8_CHROMIUM ?? '/usr/bin/chromium'
    browser.chromium = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] })
    return browser
  }

  async page(server, { dark = false, phone = false } = {}) {
    const context = await this.chromium.newContext({
      viewport: phone ? { width: 390, height: 844 } : { width: 1360, height: 900 },
      colorScheme: dark ? 'dark' : 'light',
      reducedMotion: 'reduce',
      locale: 'en-GB',
      timezoneId: 'UTC',
    })
    const page = await context.newPage()
    page.setDefaultTimeout(20_000)
    page.wrong = []
    page.on('pageerror', (error) => page.wrong.push(`error: ${error.message}`))
    page.on('console', (message) => {
      const text = message.text()
      // A server that is away is part of some tests; the browser says so for each request.
      if (message.type() === 'error' && !/Failed to load resource|WebSocket connection/.test(text)) page.wrong.push(text)
    })
    page.on('request', (request) => {
      const { host } = new URL(request.url())
      if (host !== `127.0.0.1:${server.port}`) page.wrong.push(`asked ${request.url()}`)
    })
    await page.addInitScript(() => {
      globalThis.violations = []
      document.addEventListener('securitypolicyviolation', (event) => globalThis.violations.push(`${event.violatedDirective} ${event.blockedURI}`))
    })
    return page
  }

  close() {
    return this.chromium.close()
  }
}

/** What is wrong with a page: errors, refused content, and what axe finds serious. */
export async function complaints(page, { axeToo = true } = {}) {
  const violations = await page.evaluate(() => globalThis.violations ?? [])
  const found = [...page.wrong, ...violations.map((one) => `content policy: ${one}`)]
  if (!axeToo) return found
  const results = await runAxe(page)
  const serious = results.violations.filter((one) => one.impact === 'serious' || one.impact === 'critical')
  return [...found, ...serious.map((one) => `axe: ${one.id}: ${one.nodes.slice(0, 3).map((node) => `${node.target} ${node.failureSummary}`).join(' | ')}`)]
}

/** The policy of the page forbids eval; the debugger is not bound by it. */
async function runAxe(page) {
  const session = await page.context().newCDPSession(page)
  await session.send('Runtime.evaluate', { expression: axe })
  const { result } = await session.send('Runtime.evaluate', {
    expression: "axe.run(document, { resultTypes: ['violations'] }).then((found) => JSON.stringify({ violations: found.violations.map(({ id, impact, nodes }) => ({ id, impact, nodes: nodes.map(({ target, failureSummary }) => ({ target, failureSummary })) })) }))",
    awaitPromise: true,
    returnByValue: true,
  })
  return JSON.parse(result.value)
}

export async function shoot(page, name) {
  if (!shots) return
  mkdirSync(shots, { recursive: true })
  await page.screenshot({ path: join(shots, `${name}.png`) })
}
