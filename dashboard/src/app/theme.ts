// Light, dark, or as the machine has it. Kept in this browser.
import { create } from 'zustand'

export type Theme = 'light' | 'dark' | 'system'
const NAME = 'orchestr8.theme'
const dark = matchMedia('(prefers-color-scheme: dark)')

const kept = (): Theme => {
  try {
    const value = localStorage.getItem(NAME)
    return value === 'light' || value === 'dark' ? value : 'system'
  } catch {
    return 'system'
  }
}

export const useTheme = create<{ theme: Theme }>(() => ({ theme: kept() }))

export function setTheme(theme: Theme): void {
  try {
    localStorage.setItem(NAME, theme)
  } catch {
    // Without storage it holds until the page is closed.
  }
  useTheme.setState({ theme })
  paint()
}

function paint(): void {
  const { theme } = useTheme.getState()
  const isDark = theme === 'dark' || (theme === 'system' && dark.matches)
  document.documentElement.dataset['theme'] = isDark ? 'dark' : 'light'
}

dark.addEventListener('change', paint)
// Chosen in another tab, it holds in this one too.
addEventListener('storage', (event) => {
  if (event.key !== NAME) return
  useTheme.setState({ theme: kept() })
  paint()
})
paint()
