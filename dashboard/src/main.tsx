// Where the dashboard begins.
import './index.css'
import './app/theme'
import { QueryClientProvider } from '@tanstack/react-query'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { keepFresh, queries } from './app/fresh'
import { Shell } from './app/shell'
import { begin } from './live/feed'

begin()
keepFresh()

const root = document.getElementById('root')
if (root) {
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <Shell />
      </QueryClientProvider>
    </StrictMode>,
  )
}
