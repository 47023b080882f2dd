import { beforeEach, expect, test, vi } from 'vitest'

/** As much of a browser as a theme needs. */
function browser(kept: string | null, isMachineDark: boolean) {
  const told = new Map<string, (event: { key?: string }) => void>()
  const store = { value: kept }
  const dataset: Record<string, string> = {}
  const machine = { matches: isMachineDark, addEventListener: (_: string, tell: () => void) => told.set('machine', tell) }
  vi.stubGlobal('matchMedia', () => machine)
  vi.stubGlobal('localStorage', {
    getItem: () => store.value,
    setItem: (_: string, value: string) => {
      store.value = value
    },
  })
  vi.stubGlobal('document', { documentElement: { dataset } })
  vi.stubGlobal('addEventListener', (name: string, tell: () => void) => told.set(name, tell))
  return { told, store, dataset, machine }
}

beforeEach(() => vi.resetModules())

test('a theme is kept, and holds from the first moment on', async () => {
  const first = browser(null, false)
  const { setTheme } = await import('./theme')
  expect(first.dataset['theme']).toBe('light')
  setTheme('dark')
  expect([first.dataset['theme'], first.store.value]).toEqual(['dark', 'dark'])
  vi.resetModules()
  const later = browser(first.store.value, false)
  const { useTheme } = await import('./theme')
  expect([later.dataset['theme'], useTheme.getState().theme]).toEqual(['dark', 'dark'])
})

test('without a choice it is as the machine has it, and changes with it', async () => {
  const page = browser('nonsense', true)
  await import('./theme')
  expect(page.dataset['theme']).toBe('dark')
  page.machine.matches = false
  page.told.get('machine')?.({})
  expect(page.dataset['theme']).toBe('light')
})

test('a choice in another tab holds here too', async () => {
  const page = browser('light', true)
  const { useTheme } = await import('./theme')
  expect(page.dataset['theme']).toBe('light')
  page.store.value = 'dark'
  page.told.get('storage')?.({ key: 'something else' })
  expect(page.dataset['theme']).toBe('light')
  page.told.get('storage')?.({ key: 'orchestr8.theme' })
  expect([page.dataset['theme'], useTheme.getState().theme]).toEqual(['dark', 'dark'])
})
