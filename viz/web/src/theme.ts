// Light or dark colours, remembered for the next visit.

const KEY = "wavesim-theme";

export class Theme {
  dark = localStorage.getItem(KEY) !== "light";

  /** `changed` is called after each change. */
  constructor(private readonly changed: (dark: boolean) => void) {
    this.apply();
  }

  toggle(): void {
    this.dark = !this.dark;
    localStorage.setItem(KEY, this.dark ? "dark" : "light");
    this.apply();
    this.changed(this.dark);
  }

  private apply(): void {
    document.documentElement.dataset["theme"] = this.dark ? "dark" : "light";
  }
}
